"""Computing a block again in the backward pass, instead of keeping what it computed."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops


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
    weights, states = layer.trainable_variables, layer.non_trainable_variables
    # Weights go in as tensors: on JAX a scope of our own hides what stands for them.
    given = [ops.convert_to_tensor(weight.value) for weight in weights]
    before = [ops.copy(state.value) for state in states]
    masks = [_Mask()(tensor) for tensor in tensors]

    def call(*arguments: Any) -> tuple[Any, list]:
        tensors, given = arguments[: len(masks)], arguments[len(masks) :]
        masked = [_Masked(mask)(tensor) for tensor, mask in zip(tensors, masks, strict=True)]
        values = zip((*weights, *states), (*given, *before), strict=True)
        with keras.StatelessScope(state_mapping=list(values)) as scope:
            output = function(*masked)
        return output, [scope.get_current_value(state) for state in states]

    output, after = keras.remat(call)(*tensors, *given)
    for state, value in zip(states, after, strict=True):
        state.assign(value)
    return output


class _Mask(keras.layers.Layer):
    """Gives the mask that Keras propagates with a tensor, or None."""

    def __init__(self) -> None:
        super().__init__(name="mask", autocast=False)

    def call(self, tensor, mask=None):
        return mask

    def compute_mask(self, tensor, mask=None):
        return None


class _Masked(keras.layers.Layer):
    """Gives the tensor, with which Keras will propagate a mask."""

    def __init__(self, mask: Any) -> None:
        super().__init__(name="masked", autocast=False)
        self._mask = mask

    def call(self, tensor):
        return tensor

    def compute_mask(self, tensor, mask=None):
        return self._mask
