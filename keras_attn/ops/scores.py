"""Scores between queries and keys, in float32 or wider."""

from typing import Any

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.blocks import Cut, at_least_one
from keras_attn.ops.blockwise.segments import map_segments, numbers_at_once
from keras_attn.ops.linear import linear
from keras_attn.ops.tanh import tanh
from keras_attn.tensors import Tensor

FEW_QUERIES = 16  # as there are in a step of decoding: not worth a loop


def dot_scores(query: Tensor, key: Tensor) -> Tensor:
    """Computes query keyᵀ.

    Args:
        query: Float tensor (..., target, features).
        key: Float tensor (..., source, features).

    Returns:
        Float tensor (..., target, source).
    """
    dtype = computing_dtype(query.dtype)
    return ops.matmul(ops.cast(query, dtype), ops.swapaxes(ops.cast(key, dtype), -1, -2))


def additive_scores(query: Tensor, key: Tensor, scale: Any) -> Tensor:
    """Computes tanh(query + key) scale for every pair.

    Args:
        query: Float tensor (batch, target, units).
        key: Float tensor (batch, source, units).
        scale: Float tensor (units, 1).

    Returns:
        Float tensor (batch, target, source). The `units` numbers of a pair are held for some
        queries at a time, and computed again in the backward pass.

    Reference:
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473, appendix A.1.2.
    """
    dtype = computing_dtype(query.dtype)
    query, key, scale = (ops.cast(x, dtype) for x in (query, key, scale))
    batch, target, units = ops.shape(query)
    if isinstance(target, int) and target <= FEW_QUERIES:
        return _scores_of_pairs(query, key, scale)
    source = ops.shape(key)[1]
    # Divided by one after the other: their product may not fit into int32.
    queries = numbers_at_once() // units // at_least_one(source) // at_least_one(batch)
    cut = Cut.of(target, at_least_one(queries))
    if isinstance(cut.count, int) and cut.count == 1:
        return _scores_of_pairs(query, key, scale)

    def of_segment(_, query, key, scale):
        return ops.expand_dims(_scores_of_pairs(query[:, 0], key, scale), 1)

    def like(**_):
        return ops.zeros((batch, 1, cut.size, source), dtype)

    segments = {"query": cut.split(cut.pad(ops.expand_dims(query, 1)), 1)}
    scores = map_segments(of_segment, segments, {"key": key, "scale": scale}, like)
    return cut.join(scores)[:, 0]


def _scores_of_pairs(query: Tensor, key: Tensor, scale: Any) -> Tensor:
    # (batch, target, source, units)
    pairs = tanh(ops.expand_dims(query, 2) + ops.expand_dims(key, 1))
    return linear(pairs, scale)[..., 0]
