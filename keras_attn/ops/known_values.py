"""The values of tensors, where they can be seen, and what is done where they cannot."""

import importlib
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.tensors import Tensor
from keras_attn.validation import require


def known_values(x: Tensor) -> np.ndarray | None:
    """Gives the values of a tensor, or None while a graph is traced, where it has none yet.

    Keras traces functional models on PyTorch with made-up values, which say nothing.
    """
    with keras.SymbolicScope() as scope:
        if scope.original_scope is not None:
            return None
    try:
        return ops.convert_to_numpy(x)
    except (AttributeError, TypeError, ValueError, NotImplementedError, RuntimeError):
        return None


def require_values(condition: Tensor, expectation: str, **received: Tensor) -> Any:
    """Raises where a condition on values is seen not to hold, or lets a graph fail when it runs.

    Args:
        condition: Boolean scalar tensor.
        expectation: What the error says.
        **received: Scalar tensors by name.

    Returns:
        `None` where the condition holds, and otherwise the condition, for
        `keras_attn.ops.masks.unless_refused`.

    Raises:
        UserError: The condition is seen not to hold.
    """
    known = known_values(condition)
    if known is None:
        fail_where_false(condition, expectation)
        return condition
    require(bool(known), expectation, **{name: int(x) for name, x in received.items()})
    return None


def fail_where_false(condition: Tensor, message: str) -> None:
    """Lets a graph of TensorFlow fail when it runs; XLA and other backends have no such operation.

    Args:
        condition: Boolean scalar.
        message: What the error says.
    """
    if keras.backend.backend() == "tensorflow":
        importlib.import_module("tensorflow").debugging.Assert(condition, [message])
