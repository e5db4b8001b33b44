"""Computing a block again in the backward pass, instead of keeping what it computed."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.layers.pure_call import MaskOf, PureCall


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
    output, after = keras.remat(call)(*tensors, *weights)
    pure.assign(after)
    return output
