"""Attention to what is near and to every so-many-th position, in n √n operations."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.joint_attention import (
    KeyPiece,
    attend_jointly,
    blocks_of_mask,
    neighbors,
    scaled,
)
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor


def strided_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    stride: int,
    summary_length: int = 0,
    key_mask: Tensor = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes the softmax attention of each query i to the keys j of `strided_pairs`.

    The sequence is written in rows as long as the stride: a position attends inside rows, and along
    its column or to the last columns. No matrix over all pairs is built.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        stride: Length of a row.
        summary_length: Number of last positions of each row that all attend to; 0 for columns.
        key_mask: Boolean tensor that broadcasts to (batch, heads, length), True where a key may
            be attended to.
        is_causal: Whether keys after the query are masked.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `value`: 0 where a query has
        nothing to attend to.

    Reference:
        Child et al., 2019, https://arxiv.org/abs/1904.10509, sections 4.2 and 4.3.
    """
    cut = Cut.into(ops.shape(query)[2], stride)
    query, key, value = cut.blocks(scaled(query)), cut.blocks(key), cut.blocks(value)
    real = blocks_of_mask(cut, key_mask)
    if summary_length:
        pieces = [
            _own_rows(query, key, value, real, is_causal),
            _summaries(query, key, value, real, summary_length, is_causal),
        ]
    else:
        pieces = [
            _near(query, key, value, real, is_causal),
            _columns(query, key, value, real, is_causal),
        ]
    return cut.whole(attend_jointly(pieces, dropout, seed))


def strided_pairs(
    at_query: Tensor, at_key: Tensor, stride: int, summary_length: int, is_causal: bool
) -> Any:
    """Says which pairs of positions attend.

    Args:
        at_query: int32, positions of queries.
        at_key: int32, positions of keys, which broadcast with those of the queries.
        stride: As of `strided_attention`.
        summary_length: As of `strided_attention`.
        is_causal: Whether keys after the query are masked.

    Returns:
        Boolean: |i - j| < stride or i - j is a multiple of it; with summaries i and j are in one
        row, or j is among the last of its row.
    """
    if summary_length:
        near = ops.equal(at_query // stride, at_key // stride)
        far = ops.greater_equal(at_key % stride, stride - summary_length)
    else:
        near = ops.less(ops.abs(at_query - at_key), stride)
        far = ops.equal(at_query % stride, at_key % stride)
    pairs = ops.logical_or(near, far)
    return ops.logical_and(pairs, ops.less_equal(at_key, at_query)) if is_causal else pairs


def _near(query, key, value, real, is_causal) -> KeyPiece:
    """Less than a stride away: in the own row and its neighbors."""
    size = query.shape[3]
    distance = ops.arange(size, dtype="int32")[:, None] + size
    distance = distance - ops.arange((2 if is_causal else 3) * size, dtype="int32")
    near = ops.less(ops.abs(distance), size)
    if is_causal:
        near = ops.logical_and(near, ops.greater_equal(distance, 0))
    keys, values = neighbors(key, is_causal), neighbors(value, is_causal)
    real = ops.swapaxes(neighbors(ops.expand_dims(real, -1), is_causal), -1, -2)
    return KeyPiece.of(query, keys, values, ops.logical_and(real, near))


def _columns(query, key, value, real, is_causal) -> KeyPiece:
    """In the same place of other rows."""
    query, key, value = (ops.swapaxes(x, 2, 3) for x in (query, key, value))
    real = ops.expand_dims(ops.swapaxes(real, 2, 3), 3)  # (batch, heads, size, 1, count)
    piece = KeyPiece.of(query, key, value, ops.logical_and(real, _other_rows(key, is_causal)))
    return KeyPiece(
        ops.swapaxes(piece.scores, 2, 3),
        ops.swapaxes(piece.mask, 2, 3),
        lambda weights: ops.swapaxes(piece.weigh(ops.swapaxes(weights, 2, 3)), 2, 3),
    )


def _own_rows(query, key, value, real, is_causal) -> KeyPiece:
    at = ops.arange(query.shape[3], dtype="int32")
    real = ops.expand_dims(real, 3)
    if is_causal:
        real = ops.logical_and(real, ops.less_equal(at, at[:, None]))
    return KeyPiece.of(query, key, value, real)


def _summaries(query, key, value, real, count, is_causal) -> KeyPiece:
    """The last positions of other rows."""
    size, others = query.shape[3], _other_rows(ops.swapaxes(key, 2, 3), is_causal)

    def last(x: Tensor) -> Any:
        """(batch, heads, rows, size, width) to (batch, heads, 1, rows * count, width)."""
        batch, heads, rows, _, width = ops.shape(x)
        return ops.reshape(part(x, 3, size - count, count), (batch, heads, 1, rows * count, width))

    others = ops.repeat(others, count, axis=1)[:, None]  # (rows, 1, rows * count)
    real = ops.swapaxes(last(ops.expand_dims(real, -1)), -1, -2)
    return KeyPiece.of(query, last(key), last(value), ops.logical_and(real, others))


def _other_rows(by_column: Tensor, is_causal: bool) -> Any:
    """Rows (last axis) that a row (first) sees, of a tensor (batch, heads, size, rows, width)."""
    at = ops.arange(ops.shape(by_column)[3], dtype="int32")
    return ops.less(at, at[:, None]) if is_causal else ops.not_equal(at, at[:, None])
