"""One softmax over keys that are found in different ways."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.slices import part
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor


class KeyPiece(NamedTuple):
    """Some of the keys that queries attend to.

    Attributes:
        scores: Scaled scores (…, queries, keys), float32 or wider.
        mask: Boolean tensor that broadcasts to the scores, True where a query may attend to a key.
        weigh: Takes the weights (…, queries, keys), and gives the context (…, queries, value_dim).
    """

    scores: Any
    mask: Any
    weigh: Callable[[Any], Any]

    @classmethod
    def of(
        cls, query: Tensor, key: Tensor, value: Tensor, mask: Any, bias: Any = None
    ) -> "KeyPiece":
        """Keys and values with the axes of the queries, (…, keys, width); queries are scaled.

        Those of all blocks of queries alike have 1 block.
        """
        scores = _product(query, ops.swapaxes(ops.cast(key, query.dtype), -1, -2))
        if bias is not None:
            scores = scores + ops.cast(bias, scores.dtype)
        return cls(scores, mask, lambda weights: _product(ops.cast(weights, value.dtype), value))


def attend_jointly(
    pieces: Sequence[KeyPiece],
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Any:
    """Attends to all pieces in one softmax.

    Args:
        pieces: Pieces whose scores are equal in all axes but the last.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (…, queries, value_dim): 0 where a query has nothing to attend to.
    """
    masked = [
        ops.where(piece.mask, piece.scores, ops.cast(MASKED_SCORE, piece.scores.dtype))
        for piece in pieces
    ]
    weights = softmax(ops.concatenate(masked, axis=-1))
    if dropout:
        weights = drop_out(weights, dropout, seed)
    context, start, attends = 0.0, 0, False
    for piece in pieces:
        count = ops.shape(piece.scores)[-1]
        context = context + piece.weigh(part(weights, -1, start, count))
        attends = ops.logical_or(attends, ops.any(piece.mask, axis=-1, keepdims=True))
        start += count
    return ops.where(attends, context, ops.zeros((), context.dtype))


def scaled(query: Tensor) -> Any:
    """Queries divided by the root of their size, float32 or wider."""
    return ops.cast(query, computing_dtype(query.dtype)) * query.shape[-1] ** -0.5


def blocks_of_mask(cut: Cut, key_mask: Tensor) -> Any:
    """A mask (batch or 1, heads or 1, length) or `None` as (batch or 1, heads or 1, count, size).

    What pads the last block is False.
    """
    mask = ops.ones((1, 1, cut.length), "bool") if key_mask is None else ops.cast(key_mask, "bool")
    return cut.blocks(ops.expand_dims(mask, -1))[..., 0]


def neighbors(blocks: Any, is_causal: bool) -> Any:
    """Each block behind the one before it and, unless causal, before the one after.

    Args:
        blocks: Tensor (batch, heads, count, size, width).
        is_causal: Whether the block after is left out.

    Returns:
        Tensor (batch, heads, count, 2 or 3 * size, width), 0 or False where there is no block.
    """
    count = ops.shape(blocks)[2]
    empty = ops.zeros_like(blocks[:, :, :1])
    # No slice is ever empty: XLA's simplification of those aborts the process.
    parts = [part(ops.concatenate([empty, blocks], axis=2), 2, 0, count), blocks]
    if not is_causal:
        parts.append(part(ops.concatenate([blocks, empty], axis=2), 2, 1, count))
    return ops.concatenate(parts, axis=3)


def _product(rows: Tensor, columns: Tensor) -> Any:
    """The product of (batch, heads, blocks, rows, n) and (batch, heads, blocks or 1, n, columns).

    TensorFlow's product must not broadcast (see `keras_attn.ops.linear.with_leading_axes`).
    """
    if columns.shape[2] != 1 or rows.shape[2] == 1:
        return ops.matmul(rows, columns)
    batch, heads, blocks, size, width = ops.shape(rows)
    rows = ops.reshape(rows, (batch, heads, blocks * size, width))
    found = ops.matmul(rows, columns[:, :, 0])
    return ops.reshape(found, (batch, heads, blocks, size, columns.shape[-1] or -1))
