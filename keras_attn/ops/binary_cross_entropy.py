"""Cross-entropy of several labels an input: a decision for each label."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor

YES = 2
"""Number of a label that is right; 1 means one that is not, and 0 no decision."""


def binary_cross_entropy(
    labels: Tensor,
    logits: Tensor,
    label_smoothing: float = 0.0,
    class_weights: Sequence[Sequence[float]] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Sums of the cross-entropy over the decisions of a batch.

    Args:
        labels: Integer (..., labels): 2 for a label that is right, 1 for one that is not, 0 for
            padding.
        logits: Floating, of that shape; a sigmoid makes probabilities of them.
        label_smoothing: Fraction of the probability to spread over both answers, in [0, 1).
        class_weights: Factors of the loss for each label, where it is not right and where it is.

    Returns:
        Four scalars, float32 (float64 for float64 logits): the smoothed and weighted loss, the
        negative log-likelihood, the number of decisions, and the number of those that are right at
        a threshold of 0.5.
    """
    labels = ops.cast(labels, "int32")
    if keras.backend.standardize_dtype(logits.dtype) != "float64":
        logits = ops.cast(logits, "float32")
    is_real, is_right = labels > 0, labels == YES
    real, target = ops.cast(is_real, logits.dtype), ops.cast(is_right, logits.dtype)
    smoothed = target * (1 - label_smoothing) + label_smoothing / 2
    normalizer = ops.softplus(logits)
    losses = (normalizer - smoothed * logits) * real
    nll = (normalizer - target * logits) * real
    if class_weights is not None:
        weights = ops.convert_to_tensor(class_weights, logits.dtype)  # (labels, 2)
        losses = losses * ops.where(is_right, weights[:, 1], weights[:, 0])
    correct = ops.cast(ops.equal(logits >= 0, is_right), logits.dtype) * real
    return ops.sum(losses), ops.sum(nll), ops.sum(real), ops.sum(correct)
