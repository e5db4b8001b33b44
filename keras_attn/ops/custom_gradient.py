"""Functions that bring their own gradient, written once for every backend."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.ops.autodiff import torch_custom_gradient


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient`, with one way for all backends to give the upstream gradient.

    Args:
        function: Takes tensors and returns outputs, a tensor or a tuple of tensors, and
            `gradient(*upstream)`, which is given one upstream gradient for each output and
            returns one gradient for each input.

    Returns:
        A function of the same tensors that returns the outputs.
    """
    if keras.backend.backend() == "torch":
        return torch_custom_gradient(function)

    def with_gradient(*inputs: Any) -> tuple[Any, Callable]:
        outputs, gradient = function(*inputs)

        def from_upstream(*args: Any, upstream: Any = None) -> Any:
            return gradient(*keras.tree.flatten(args if upstream is None else upstream))

        return outputs, from_upstream

    return ops.custom_gradient(with_gradient)
