"""Inputs of attention without what their masks hide."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.masks import combine_masks


def without_hidden(x: Any, real: Any) -> Any:
    """Replaces the vectors of hidden positions by zeros.

    What a hidden position holds, NaN included, then reaches neither outputs nor gradients. A
    product with the mask would keep NaN.

    Args:
        x: Tensor (batch, length, features), or `None`.
        real: Boolean (batch or 1, length or 1), `False` at hidden positions, or `None`.

    Returns:
        Tensor of the shape and dtype of `x`, `x` itself where nothing is hidden.
    """
    if x is None or real is None:
        return x
    real = ops.expand_dims(ops.cast(real, "bool"), -1)
    return ops.where(real, x, ops.zeros((), x.dtype))


def visible_inputs(
    dtype: str,
    query: Any,
    value: Any,
    key: Any = None,
    query_mask: Any = None,
    value_mask: Any = None,
    key_mask: Any = None,
    attention_mask: Any = None,
) -> tuple[Any, Any, Any]:
    """Gives the inputs of attention as floats, and zeros at positions that are hidden.

    Keys and values are hidden by their masks and by an `attention_mask` that hides them from every
    query, queries by `query_mask`. A tensor in both roles stays one tensor. What it holds at a key
    that is hidden is still a query where `query_mask` does not hide that: there its finite numbers
    are kept, which no real query sees, and only NaN and infinity become 0.

    Args:
        dtype: Dtype that the mechanism computes in.
        query: Tensor (batch, target, features).
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features), or `None`.
        query_mask: Boolean (batch, target), or `None`.
        value_mask: Boolean (batch, source), or `None`.
        key_mask: Boolean (batch, source), or `None`.
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or `None`.

    Returns:
        Query, value and key.
    """
    visible_keys = combine_masks(value_mask, key_mask, seen_by_any(attention_mask))
    sources = [id(x) for x in (value, key) if x is not None]
    prepared = {}
    for x in (query, value, key):
        if x is None or id(x) in prepared:
            continue
        real = visible_keys if id(x) in sources else query_mask
        floats = as_float(x, dtype)
        if x is query and real is not None and real is not query_mask:
            prepared[id(x)] = _visible_or_finite_query(floats, real, query_mask)
        else:
            prepared[id(x)] = without_hidden(floats, real)
    return tuple(None if x is None else prepared[id(x)] for x in (query, value, key))


def _visible_or_finite_query(x: Any, visible: Any, query_mask: Any) -> Any:
    kept = ops.isfinite(x)
    if query_mask is not None:
        kept = ops.logical_and(kept, ops.expand_dims(query_mask, -1))
    kept = ops.logical_or(kept, ops.expand_dims(visible, -1))
    return ops.where(kept, x, ops.zeros((), x.dtype))


def as_float(x: Any, dtype: str) -> Any:
    """Casts integers and booleans, as Keras does not, to the dtype that a layer computes in."""
    x = ops.convert_to_tensor(x)
    is_float = keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype))
    return x if is_float else ops.cast(x, dtype)


def of_known_features(x: Any, features: int | None) -> Any:
    """Sets the static number of features of a tensor where a graph does not know it."""
    if x is None or x.shape[-1] is not None:
        return x
    return ops.reshape(x, (*ops.shape(x)[:-1], features))


def seen_by_any(attention_mask: Any) -> Any:
    """Marks the keys that some query may attend to.

    Args:
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or `None`.

    Returns:
        Boolean (batch or 1, source), or `None`.
    """
    if attention_mask is None:
        return None
    if len(attention_mask.shape) == 2:
        attention_mask = ops.expand_dims(attention_mask, 0)
    return ops.any(attention_mask, axis=tuple(range(1, len(attention_mask.shape) - 1)))
