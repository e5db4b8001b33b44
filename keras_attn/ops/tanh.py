"""The hyperbolic tangent in the precision of its input."""

import keras
from keras import ops

from keras_attn.tensors import Tensor


def tanh(x: Tensor) -> Tensor:
    """Computes tanh, also of float64: on JAX `keras.ops.tanh` makes float32 of that.

    Args:
        x: Float tensor.

    Returns:
        Tensor of the shape and dtype of `x`.
    """
    if keras.backend.standardize_dtype(x.dtype) == "float64":
        return 2.0 * ops.sigmoid(2.0 * x) - 1.0
    return ops.tanh(x)
