"""SinusoidalPositionEncoding: the paper's numbers, offsets, bfloat16 past position 256."""

import keras
import numpy as np
import pytest

from keras_attn.layers import SinusoidalPositionEncoding
from tests.harness import numpy


def zeros(batch, length, features):
    return np.zeros((batch, length, features), "float32")


def test_equals_the_formula_of_the_paper():
    encoding = numpy(SinusoidalPositionEncoding()(zeros(1, 13, 6)))[0]
    for position in range(13):
        for pair in range(3):
            angle = position / 10_000 ** (2 * pair / 6)
            np.testing.assert_allclose(encoding[position, 2 * pair], np.sin(angle), atol=1e-6)
            np.testing.assert_allclose(encoding[position, 2 * pair + 1], np.cos(angle), atol=1e-6)


@pytest.mark.parametrize("features", [6, 7])
def test_sines_may_come_first(features):
    paper = numpy(SinusoidalPositionEncoding()(zeros(1, 13, features)))[0]
    found = numpy(SinusoidalPositionEncoding(interleaved=False)(zeros(1, 13, features)))[0]
    np.testing.assert_array_equal(found, np.concatenate([paper[:, ::2], paper[:, 1::2]], axis=1))


def test_it_is_added_to_the_inputs():
    inputs = np.full((2, 5, 6), 3.0, "float32")
    layer = SinusoidalPositionEncoding()
    np.testing.assert_allclose(numpy(layer(inputs)), numpy(layer(zeros(2, 5, 6))) + 3, atol=1e-6)


def test_starts_anywhere():
    layer = SinusoidalPositionEncoding()
    whole = numpy(layer(zeros(1, 31, 6)))[0]
    shifted = numpy(layer(zeros(2, 5, 6), start_index=7))
    np.testing.assert_allclose(shifted[1], whole[7:12], atol=1e-6)
    rows = numpy(layer(zeros(2, 5, 6), start_index=np.array([3, 17])))
    np.testing.assert_allclose(rows, np.stack([whole[3:8], whole[17:22]]), atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_bfloat16_tells_late_positions_apart(dtype):
    layer = SinusoidalPositionEncoding(dtype=dtype)
    encoding = numpy(layer(zeros(1, 1024, 64)))[0].astype("float32")
    assert len(np.unique(encoding, axis=0)) == 1024
    exact = numpy(SinusoidalPositionEncoding()(zeros(1, 1024, 64)))[0]
    np.testing.assert_allclose(encoding, exact, atol=2**-8)


def test_serialises_with_a_policy_object():
    layer = SinusoidalPositionEncoding(dtype=keras.DTypePolicy("mixed_bfloat16"))
    copy = SinusoidalPositionEncoding.from_config(layer.get_config())
    assert copy.compute_dtype == "bfloat16"


def test_masks_go_on():
    embedded = keras.layers.Embedding(11, 6, mask_zero=True)(np.array([[3, 0]]))
    mask = SinusoidalPositionEncoding()(embedded)._keras_mask
    np.testing.assert_array_equal(numpy(mask), [[True, False]])
