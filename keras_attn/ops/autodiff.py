"""Custom gradients and vector-Jacobian products on every backend."""

import contextlib
import contextvars
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor

_FORWARD_ONLY = contextvars.ContextVar("forward_only", default=False)


def vector_jacobian_product(function: Callable, *inputs: Any) -> tuple[Any, Callable]:
    """Calls a function and prepares its gradient.

    Args:
        function: Takes the tensors and returns one tensor.
        *inputs: Float tensors.

    Returns:
        The output, and `pull_back(upstream)`, which gives a gradient for each input.
    """
    return _BACKENDS[keras.backend.backend()](function, *inputs)


def gradients_by_name(
    function: Callable, tensors: dict[str, Any], upstream: Tensor
) -> dict[str, Any]:
    """Computes the gradients of a function that takes tensors by name.

    Args:
        function: Takes every tensor by its name; returns one tensor.
        tensors: Tensors of any dtype by name.
        upstream: The gradient for what the function returns.

    Returns:
        The gradients of the float tensors, by name.
    """
    floats = [name for name, tensor in tensors.items() if is_float(tensor)]

    def of_floats(*some: Any) -> Any:
        return function(**(tensors | dict(zip(floats, some, strict=True))))

    _, pull_back = vector_jacobian_product(of_floats, *(tensors[name] for name in floats))
    return dict(zip(floats, pull_back(upstream), strict=True))


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


@contextlib.contextmanager
def forward_only() -> Iterator[None]:
    """Leaves out custom gradients of what is called or traced inside, as a graph for serving is.

    TensorFlow warns of every one of them when it loads a SavedModel.
    """
    token = _FORWARD_ONLY.set(True)
    try:
        yield
    finally:
        _FORWARD_ONLY.reset(token)


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient`, with one way for all backends to give the upstream gradient.

    Inside `forward_only` there is no such gradient.

    Args:
        function: Takes tensors and returns outputs, a tensor or a tuple of tensors, and
            `gradient(*upstream)`, which is given one upstream gradient for each output and
            returns one gradient for each input.

    Returns:
        A function of the same tensors that returns the outputs.
    """
    if _FORWARD_ONLY.get():
        return lambda *inputs: function(*inputs)[0]
    if keras.backend.backend() == "torch":
        return _torch_custom_gradient(function)

    def with_gradient(*inputs: Any) -> tuple[Any, Callable]:
        outputs, gradient = function(*inputs)

        def from_upstream(*args: Any, upstream: Tensor = None) -> Tensor:
            return gradient(*keras.tree.flatten(args if upstream is None else upstream))

        return outputs, from_upstream

    return ops.custom_gradient(with_gradient)


def _torch_custom_gradient(function: Callable) -> Callable:
    """The form that `custom_gradient` has on torch, where Keras passes on one output alone.

    Args:
        function: Takes tensors and returns outputs, a tensor or a tuple of tensors, and
            `gradient(*upstream)`, which returns one gradient for each input.

    Returns:
        A function of the same tensors that returns the outputs.
    """
    torch = importlib.import_module("torch")

    class WithGradient(torch.autograd.Function):
        @staticmethod
        def forward(context: Tensor, *inputs: Any) -> Tensor:
            outputs, context.gradient = function(*inputs)
            # `gradient` may hold the outputs: those that hold it in turn must be others.
            return keras.tree.map_structure(lambda x: x.detach(), outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context: Tensor, *upstream: Any) -> Tensor:
            return context.gradient(*upstream)

    return lambda *inputs: WithGradient.apply(*map(keras.ops.convert_to_tensor, inputs))


def is_float(x: Tensor) -> bool:
    """Whether a tensor may have a gradient."""
    return keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype))


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


def _torch(function, *inputs):
    torch = importlib.import_module("torch")
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() for x in inputs]
        output = function(*inputs)

    def pull_back(upstream):
        pairs = zip(keras.tree.flatten(output), keras.tree.flatten(upstream), strict=True)
        pairs = [(y, y_grad) for y, y_grad in pairs if y.requires_grad]
        if not pairs:
            return [torch.zeros_like(x) for x in inputs]
        outputs, grads = zip(*pairs, strict=True)
        return torch.autograd.grad(outputs, inputs, grads, materialize_grads=True)

    return keras.tree.map_structure(lambda y: y.detach(), output), pull_back


def _wait_on_torch(tensors, _):  # which computes in the order of the calls
    return tensors


_WAITING = {"tensorflow": _wait_on_tensorflow, "jax": _wait_on_jax, "torch": _wait_on_torch}
_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
