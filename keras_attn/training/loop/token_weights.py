"""What each token counts for in losses and metrics."""

import numbers
from typing import Any

from keras import ops

from keras_attn.validation import require


def require_whole(**received: Any) -> None:
    """Raises unless every value is a whole number (numbers named by keyword)."""
    for name, value in received.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        require(whole, f"`{name}` must be a whole number.", **{name: value})


def real_tokens(labels: Any, ignore_id: int, dtype: Any) -> Any:
    """Gives 1 for each label that counts and 0 for those that are ignored."""
    return ops.cast(ops.not_equal(ops.cast(labels, "int32"), ignore_id), dtype)


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
