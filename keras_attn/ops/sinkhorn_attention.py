"""Attention to the own block and to a mixture of blocks sorted by a doubly stochastic matrix."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.joint_attention import KeyPiece, attend_jointly, blocks_of_mask, scaled
from keras_attn.ops.linear import with_leading_axes
from keras_attn.ops.running_sums import NO_SCALE
from keras_attn.tensors import Tensor


def sinkhorn_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    order: Tensor,
    block_length: int,
    key_mask: Tensor = None,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes the softmax attention of each block to itself and to a mixture of all blocks.

    Time and memory are linear in the length, but for the order of the blocks.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        order: Weights of the blocks (last axis) in the mixture that each block attends to,
            (batch, heads, blocks, blocks), as of `sinkhorn`.
        block_length: Length of a block.
        key_mask: Boolean tensor that broadcasts to (batch, heads, length), True where a key may
            be attended to.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `value`: 0 where a query has
        nothing to attend to.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2002.11296, sections 3.1 and 3.2.
    """
    cut = Cut.into(ops.shape(query)[2], block_length)
    real = blocks_of_mask(cut, key_mask)
    weights = ops.cast(ops.expand_dims(real, -1), value.dtype)
    query, key, value = cut.blocks(scaled(query)), cut.blocks(key), cut.blocks(value)

    def mixed(blocks: Any) -> Any:
        batch, heads, count, size, width = ops.shape(blocks)
        flat = ops.reshape(blocks, (batch, heads, count, size * width))
        flat = ops.matmul(ops.cast(order, flat.dtype), with_leading_axes(flat, order))
        return ops.reshape(flat, (-1, ops.shape(order)[1], count, size, width))

    # What is masked has no part in a mixture; a mixture of nothing else is masked itself.
    some = ops.greater(mixed(ops.cast(weights, "float32"))[..., 0], 0)
    pieces = [
        KeyPiece.of(query, key, value, ops.expand_dims(real, 3)),
        KeyPiece.of(query, mixed(key * weights), mixed(value * weights), ops.expand_dims(some, 3)),
    ]
    return cut.whole(attend_jointly(pieces, dropout, seed))


def sinkhorn(logits: Tensor, exists: Tensor, iterations: int) -> Any:
    """Normalizes rows and columns in turn, until matrices are nearly doubly stochastic.

    Args:
        logits: Float tensor (batch, heads, size, size), the logarithms of positive matrices.
        exists: Boolean (batch or 1, heads or 1, size), `False` where a row and its column are not
            part of the matrix.
        iterations: Number of times that both are normalized.

    Returns:
        Tensor of the same shape, 0 outside of the matrices.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2002.11296, section 3.1.1.
    """
    both = ops.logical_and(ops.expand_dims(exists, -1), ops.expand_dims(exists, -2))
    logs = ops.where(both, logits, NO_SCALE)
    for _ in range(iterations):
        for axis in (-1, -2):
            logs = logs - ops.logsumexp(logs, axis=axis, keepdims=True)
            logs = ops.where(both, logs, NO_SCALE)
    return ops.exp(logs)
