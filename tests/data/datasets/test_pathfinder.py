"""Pathfinder's images, looked at by their pixels and by the geometry of their curves."""

import itertools
import random

import numpy as np
import pytest

from keras_attn.data import images_to_array, load_pathfinder, load_pathfinder_images
from keras_attn.data.datasets.pathfinder import _curves

pytestmark = pytest.mark.tensorflow

SIZES = {"train": 60, "validation": 3, "test": 5}


@pytest.fixture(scope="module")
def parts():
    return load_pathfinder(**SIZES)


def pixels_of(text):
    return np.array([ord(character) - 0x2800 for character in text]).reshape(32, 32)


def test_two_discs_and_some_curves(parts):
    assert {part: len(pairs) for part, pairs in parts.items()} == SIZES
    for text in parts["train"].sources:
        pixels = pixels_of(text)
        assert pixels.min() == 0
        assert pixels.max() == 255
        # A disc of radius 1.5 has 4 to 9 pixels that are covered; dashes are at most 0.75 bright.
        assert 8 <= (pixels > 192).sum() <= 20
        assert 0.15 < (pixels > 0).mean() < 0.6


def test_images_are_the_texts(parts):
    images = load_pathfinder_images(**SIZES)
    assert images["test"].targets == parts["test"].targets
    arrays = images_to_array(images["test"].sources, height=32, width=32, channels=1)
    for array, text in zip(arrays, parts["test"].sources, strict=True):
        pixels = np.asarray(array)[..., 0]
        np.testing.assert_allclose(pixels / pixels.max() * 255, pixels_of(text), atol=1)


def test_labels_are_equally_frequent_and_follow_the_seed(parts):
    labels = load_pathfinder(train=200, validation=1, test=1, seed=3)["train"].targets
    assert set(labels) == {"joined", "apart"}
    assert 70 < labels.count("joined") < 130
    assert load_pathfinder(**SIZES)["train"] == parts["train"]
    assert labels[:60] != parts["train"].targets


def test_curves_do_not_touch():
    """Points of different curves are further apart than the gap between dashes of one."""
    for seed in range(20):
        curves = None
        while curves is None:
            curves = _curves(random.Random(seed))
            seed += 1_000
        assert [len(curve.dashes) for curve in curves] == [14, 14, 4, 4, 4, 4, 4]
        points = []
        for curve in curves:
            dashes = np.array(curve.dashes)
            np.testing.assert_allclose(np.hypot(*(dashes[:, 2:] - dashes[:, :2]).T), 2.0)
            np.testing.assert_allclose(np.hypot(*(dashes[1:, :2] - dashes[:-1, 2:]).T), 1.0)
            parts = np.linspace(0, 1, 9)[:, None, None]
            points.append((dashes[:, :2] + parts * (dashes[:, 2:] - dashes[:, :2])).reshape(-1, 2))
            assert points[-1].min() >= 1.0
            assert points[-1].max() <= 31.0
        for one, other in itertools.combinations(points, 2):
            assert np.linalg.norm(one[:, None] - other, axis=-1).min() > 1.0
