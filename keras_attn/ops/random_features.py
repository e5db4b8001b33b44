"""Positive random features whose products estimate the exponential of a product."""

from typing import Any

import numpy as np
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.linear import linear
from keras_attn.ops.linear_attention import Features
from keras_attn.ops.running_sums import NO_SCALE
from keras_attn.tensors import Tensor

# Added to a query's features, whose greatest is 1, so that it always finds some key.
_EPSILON = 1e-12


def random_directions(width: int, count: int, seed: Any = None) -> np.ndarray:
    """Draws directions that are orthogonal to each other in groups of `width`.

    Each is distributed as a vector of independent normal numbers.

    Args:
        width: Size of the vectors.
        count: Number of directions.
        seed: A whole number or a NumPy generator.

    Returns:
        float64 (width, count).

    Reference:
        Choromanski et al., 2020, https://arxiv.org/abs/2009.14794, section 2.4.
    """
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(-(-count // width)):
        # The signs of R's diagonal make Q uniformly distributed.
        q, r = np.linalg.qr(rng.normal(size=(width, width)))
        groups.append(q * np.sign(np.diag(r)))
    directions = np.concatenate(groups, axis=1)[:, :count]
    return directions * np.linalg.norm(rng.normal(size=(width, count)), axis=0)


def query_features(query: Tensor, directions: Tensor) -> Any:
    """Features of queries, whose greatest is 1.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        directions: Float tensor (key_dim, features), as of `random_directions`.

    Returns:
        Positive tensor (batch, heads, target, features), float32 or wider: each query's features
        are divided by the greatest of them, which changes no average.

    Reference:
        Choromanski et al., 2020, https://arxiv.org/abs/2009.14794, equation 5 and lemma 1.
    """
    logs = _logarithms(query, directions)
    # Its gradient counts, since what is added is not divided by the greatest.
    return ops.exp(logs - _greatest(logs)) + _EPSILON


def key_features(key: Tensor, directions: Tensor) -> Features:
    """Features of keys with their scale.

    Args:
        key: Float tensor (batch, heads, source, key_dim).
        directions: Float tensor (key_dim, features).

    Returns:
        Features (batch, heads, source, features), float32 or wider; the greatest one of each key
        is its scale.
    """
    logs = _logarithms(key, directions)
    log_scale = ops.stop_gradient(_greatest(logs))
    return Features(ops.exp(logs - log_scale), log_scale)


def _logarithms(x: Tensor, directions: Tensor) -> Any:
    """ωᵀx - |x|² / 2 of x divided by the fourth root of its size, as scores are by the root."""
    x = ops.cast(x, computing_dtype(x.dtype)) * x.shape[-1] ** -0.25
    return (
        linear(x, ops.cast(directions, x.dtype))
        - ops.sum(ops.square(x), axis=-1, keepdims=True) / 2.0
    )


def _greatest(logs: Any) -> Any:
    if 0 in logs.shape:  # Keras' maximum of nothing has another shape on PyTorch
        return logs[..., :1]
    return ops.max(logs, axis=-1, keepdims=True, initial=NO_SCALE)
