"""The values of tensors, where they can be seen, and what is done where they cannot."""

import importlib

import keras
import numpy as np
from keras import ops

from keras_attn.tensors import Tensor


def known_values(x: Tensor) -> np.ndarray | None:
    """Gives the values of a tensor, or None while a graph is traced, where it has none yet."""
    try:
        return ops.convert_to_numpy(x)
    except (AttributeError, TypeError, ValueError, NotImplementedError, RuntimeError):
        return None


def fail_where_false(condition: Tensor, message: str) -> None:
    """Lets a graph of TensorFlow fail when it runs; XLA and other backends have no such operation.

    Args:
        condition: Boolean scalar.
        message: What the error says.
    """
    if keras.backend.backend() == "tensorflow":
        importlib.import_module("tensorflow").debugging.Assert(condition, [message])
