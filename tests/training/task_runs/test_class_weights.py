"""Weights by which all labels count alike; scikit-learn is the judge."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from keras_attn.data import Pairs
from keras_attn.training.task_runs import TASK_RUNS

pytestmark = pytest.mark.tensorflow


def test_balanced_weights():
    labels = ["a"] * 9 + ["b"] * 3 + ["c"]
    texts = Pairs([str(number) for number in range(13)], labels)
    found = TASK_RUNS["classification"].balanced_weights(texts, ["a", "b", "c"])
    expected = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=labels)
    np.testing.assert_allclose(found, expected)


def test_balanced_weights_of_tags():
    texts = Pairs(["x y z", "x"], ["O O N", "O"])
    found = TASK_RUNS["token_classification"].balanced_weights(texts, ["N", "O"])
    np.testing.assert_allclose(found, [4 / 2 / 1, 4 / 2 / 3])


def test_balanced_weights_of_several_labels():
    rows = [("a", "b")] * 3 + [("a",)] * 4 + [()] * 2
    texts = Pairs([str(number) for number in range(9)], rows)
    found = TASK_RUNS["multi_label_classification"].balanced_weights(texts, ["a", "b"])
    for label, weights in zip("ab", found, strict=True):
        has = [label in labels for labels in rows]
        expected = compute_class_weight("balanced", classes=np.array([False, True]), y=has)
        np.testing.assert_allclose(weights, expected)
