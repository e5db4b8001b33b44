"""Vector-Jacobian products, which `keras.ops` lacks; the one place that knows the backends."""

import importlib
from collections.abc import Callable
from typing import Any

import keras


def vector_jacobian_product(function: Callable, *inputs: Any) -> tuple[Any, Callable]:
    """Calls a function and prepares its gradient.

    Args:
        function: Takes the tensors and returns one tensor.
        *inputs: Float tensors.

    Returns:
        The output, and `pull_back(upstream)`, which gives a gradient for each input.
    """
    return _BACKENDS[keras.backend.backend()](function, *inputs)


def _tensorflow(function, *inputs):
    tf = importlib.import_module("tensorflow")
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        output = function(*inputs)

    def pull_back(upstream):
        return tape.gradient(
            output, inputs, upstream, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

    return output, pull_back


def _jax(function, *inputs):
    return importlib.import_module("jax").vjp(function, *inputs)


_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax}
