"""Scores between queries and keys, in float32 or wider."""

from typing import Any

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.tanh import tanh


def dot_scores(query: Any, key: Any) -> Any:
    """Computes query keyᵀ.

    Args:
        query: Float tensor (..., target, features).
        key: Float tensor (..., source, features).

    Returns:
        Float tensor (..., target, source).
    """
    dtype = computing_dtype(query.dtype)
    return ops.matmul(ops.cast(query, dtype), ops.swapaxes(ops.cast(key, dtype), -1, -2))


def additive_scores(query: Any, key: Any, scale: Any) -> Any:
    """Computes tanh(query + key) scale for every pair.

    Args:
        query: Float tensor (batch, target, units).
        key: Float tensor (batch, source, units).
        scale: Float tensor (units, 1).

    Returns:
        Float tensor (batch, target, source). On the way there are `units` numbers for each pair.

    Reference:
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473, appendix A.1.2.
    """
    dtype = computing_dtype(query.dtype)
    query, key, scale = (ops.cast(x, dtype) for x in (query, key, scale))
    pairs = tanh(query[:, :, None] + key[:, None])  # (batch, target, source, units)
    return ops.matmul(pairs, scale)[..., 0]
