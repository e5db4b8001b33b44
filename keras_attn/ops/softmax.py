"""Softmax of masked scores."""

from typing import Any

from keras import ops

from keras_attn.tensors import Tensor

# The score of what is masked: finite, so that a row with nothing to attend to stays free of NaN,
# and far below any real score.
MASKED_SCORE = -1e30


def softmax(scores: Tensor) -> Tensor:
    """Computes the softmax over the last axis, also where it is known to have one element.

    Args:
        scores: Finite float tensor.

    Returns:
        Tensor of the shape and dtype of `scores`.
    """
    if scores.shape[-1] == 1:
        # keras.ops.softmax warns. A constant would cut the gradient, which is 0.
        return ops.exp(scores - scores)
    return ops.softmax(scores, axis=-1)


def softmax_with_sums(scores: Tensor) -> tuple[Any, Any, Any]:
    """Computes the softmax of part of a row, and what is needed to join parts.

    On a CPU the softmax kernel takes half the time of the exponentials alone.

    Args:
        scores: Finite float tensor (..., columns).

    Returns:
        The softmax (..., columns), the highest score (..., 1) and the sum of
        exp(score - highest score) (..., 1), all in the dtype of `scores`.
    """
    weights = softmax(scores)
    # Without an initial value Keras refuses a batch of nothing.
    highest = ops.max(scores, axis=-1, keepdims=True, initial=MASKED_SCORE)
    # The highest score has a weight of exp(0) / sum.
    return weights, highest, 1.0 / ops.max(weights, axis=-1, keepdims=True, initial=0.0)
