"""What `keras.ops` lacks for gradients of our own; the one place that knows the backends."""

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


def wait_for(tensors: list, others: list) -> list:
    """Gives the tensors no earlier than others have been computed.

    Where nothing says so, work that needs the tensors alone may all be done first, and all that it
    makes has to be kept.

    Args:
        tensors: Tensors.
        others: Tensors.

    Returns:
        The tensors.
    """
    return _WAITING[keras.backend.backend()](tensors, others)


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


def _wait_on_tensorflow(tensors, others):
    tf = importlib.import_module("tensorflow")
    with tf.control_dependencies(others):
        return [tf.identity(tensor) for tensor in tensors]


def _jax(function, *inputs):
    return importlib.import_module("jax").vjp(function, *inputs)


def _wait_on_jax(tensors, others):
    return importlib.import_module("jax").lax.optimization_barrier((tensors, others))[0]


_WAITING = {"tensorflow": _wait_on_tensorflow, "jax": _wait_on_jax}
_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax}
