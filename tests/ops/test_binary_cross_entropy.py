"""Cross-entropy of several labels; Keras' own is the judge."""

import keras
import numpy as np
import pytest

from keras_attn.ops.binary_cross_entropy import binary_cross_entropy
from tests.harness import numbers

LOGITS = numbers(1, 5, 3)
LABELS = np.random.default_rng(2).integers(0, 3, (5, 3))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, [[0.5, 2.0], [1.0, 3.0], [0.25, 0.75]]])
def test_it_is_that_of_keras(smoothing, weights):
    def expected(smoothing, factors):
        judge = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)
        return sum(
            factors[column][label - 1] * float(judge([[label - 1.0]], [[LOGITS[row, column]]]))
            for (row, column), label in np.ndenumerate(LABELS)
            if label
        )

    ones = [[1.0, 1.0]] * 3
    found = [float(value) for value in binary_cross_entropy(LABELS, LOGITS, smoothing, weights)]
    right = ((LOGITS >= 0) == (LABELS == 2))[LABELS > 0].sum()
    assert found == pytest.approx(
        [expected(smoothing, weights or ones), expected(0.0, ones), (LABELS > 0).sum(), right],
        rel=1e-5,
    )
