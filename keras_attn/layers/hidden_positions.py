"""Inputs of attention without what their masks hide."""

from typing import Any

from keras import ops

from keras_attn.ops.autodiff import is_float
from keras_attn.tensors import Tensor


def without_hidden(x: Tensor, real: Tensor) -> Any:
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


def as_float(x: Tensor, dtype: str) -> Any:
    """Casts integers and booleans, as Keras does not, to the dtype that a layer computes in."""
    x = ops.convert_to_tensor(x)
    return x if is_float(x) else ops.cast(x, dtype)


def of_known_features(x: Tensor, features: int | None) -> Any:
    """Sets the static number of features of a tensor where a graph does not know it."""
    if x is None or x.shape[-1] is not None:
        return x
    return ops.reshape(x, (*ops.shape(x)[:-1], features))
