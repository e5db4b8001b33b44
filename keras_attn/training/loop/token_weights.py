"""Weights of tokens in losses and metrics."""

import numbers
from typing import Any

from keras import ops

from keras_attn.ops.cross_entropy import counts, have_columns
from keras_attn.ops.known_values import fail_where_false
from keras_attn.validation import require


def require_whole(**received: Any) -> None:
    """Raises unless every value is a whole number (numbers named by keyword)."""
    for name, value in received.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        require(whole, f"`{name}` must be a whole number.", **{name: value})


def real_tokens(labels: Any, ignore_id: int, dtype: Any) -> Any:
    """Returns 1 for each label that counts and 0 for those that are ignored."""
    return ops.cast(counts(labels, ignore_id), dtype)


def weighted(real: Any, sample_weight: Any) -> Any:
    """Weighs tokens.

    Args:
        real: Floating (batch, length).
        sample_weight: Weights (batch,) or (batch, length).

    Returns:
        Floating (batch, length).
    """
    sample_weight = ops.cast(sample_weight, real.dtype)
    if len(sample_weight.shape) == 1:
        sample_weight = ops.expand_dims(sample_weight, -1)
    return ops.multiply(real, sample_weight)


def require_columns(labels: Any, logits: Any, ignore_id: int) -> Any:
    """Raises for labels that count and have no column in the logits.

    Args:
        labels: int32 (batch, length).
        logits: Floating (batch, length, vocabulary).
        ignore_id: The label that is ignored.

    Returns:
        Whether each label is valid, boolean (batch, length). In a graph of TensorFlow the failure
        comes when it runs, unless XLA compiled it.

    Raises:
        UserError: A label is neither ignored nor in [0, vocabulary).
    """
    vocabulary = logits.shape[-1]
    right = have_columns(labels, vocabulary, ignore_id=ignore_id) | ~counts(labels, ignore_id)
    fail_where_false(
        ops.all(right), f"Labels must be in [0, {vocabulary - 1}], or {ignore_id} or -100."
    )
    return right
