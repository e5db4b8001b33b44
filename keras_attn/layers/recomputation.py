"""Computing a block again in the backward pass, instead of keeping what it computed."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.layers.pure_call import MaskOf, PureCall
from keras_attn.ops.autodiff import vector_jacobian_product
from keras_attn.ops.custom_gradient import custom_gradient


def recomputed(layer: keras.layers.Layer, function: Callable, *tensors: Any) -> Any:
    """Calls a part of a layer such that gradients keep its inputs alone.

    The backward pass calls `function` again. `keras.remat` alone would then drop other elements
    than the forward pass did, on TensorFlow, and lose the masks that Keras propagates; here both
    calls begin with the same states of the random generators and see the same masks.

    Args:
        layer: Whose variables the call uses, those of its random generators among them.
        function: Takes the tensors and returns one tensor. Integers and masks that it uses besides
            must be bound to it.
        *tensors: Float tensors to be differentiated by.

    Returns:
        What `function(*tensors)` returns.

    Reference:
        Chen et al., 2016, https://arxiv.org/abs/1604.06174.
    """
    pure = PureCall(layer, function, *(MaskOf()(tensor) for tensor in tensors))
    weights, states = pure.weights(), pure.states()

    def call(*arguments: Any) -> tuple[Any, list]:
        return pure(arguments[: len(tensors)], arguments[len(tensors) :], states)

    # Weights go in as tensors: on JAX a scope of our own hides what stands for them.
    remat = _remat_on_torch if keras.backend.backend() == "torch" else keras.remat
    output, after = remat(call)(*tensors, *weights)
    pure.assign(after)
    return output


def _remat_on_torch(call: Callable) -> Callable:
    """`keras.remat` there keeps what our own gradients need, and counts what is saved."""

    def with_gradient(*arguments: Any) -> tuple[Any, Callable]:
        output, after = call(*arguments)

        def gradient(upstream: Any, *_: Any) -> tuple:
            pull_back = vector_jacobian_product(lambda *given: call(*given)[0], *arguments)[1]
            return tuple(pull_back(upstream))

        return (output, *after), gradient

    def run(*arguments: Any) -> tuple[Any, list]:
        output, *after = custom_gradient(with_gradient)(*arguments)
        return output, after

    return run
