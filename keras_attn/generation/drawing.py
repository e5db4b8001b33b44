"""Sampling from distributions with given uniform numbers."""

import math

from keras import ops

from keras_attn.tensors import Tensor


def draw_columns(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Draws one column of each row by the softmax of its logits.

    The distribution function is inverted twice, for a block of columns and then within it: sums of
    a few hundred numbers lose no small probability, and nothing but one pass of exponentials has
    the size of the vocabulary.

    Args:
        logits: float32 or float64 (rows, columns), `-inf` for what is not to be drawn. A row with
            NaN, or of nothing but `-inf`, gives any column.
        uniforms: Uniform numbers in [0, 1) of the same dtype, (rows, 2).

    Returns:
        int32 (rows,).
    """
    logits, uniforms = ops.convert_to_tensor(logits), ops.convert_to_tensor(uniforms)
    columns = logits.shape[-1]
    block = 2 ** round(math.log2(columns) / 2)
    blocks = -(-columns // block)
    weights = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    weights = ops.pad(weights, ((0, 0), (0, blocks * block - columns)))
    weights = ops.reshape(weights, (-1, blocks, block))
    chosen = _invert(ops.sum(weights, axis=-1), uniforms[:, 0])
    inside = ops.take_along_axis(weights, chosen[:, None, None], axis=1)[:, 0]  # (rows, block)
    column = chosen * block + _invert(inside, uniforms[:, 1])
    return ops.minimum(column, columns - 1)


def _invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The first column of positive weight whose sum of weights so far passes the number's share."""
    sums = ops.where(weights > 0, ops.cumsum(weights, axis=-1), -1.0)
    # The last sum of a positive weight is the largest: rounding can lead to no weight of 0.
    total = ops.max(sums, axis=-1, keepdims=True)
    return ops.cast(
        ops.argmax(ops.cast(sums > uniforms[:, None] * total, "int32"), axis=-1), "int32"
    )
