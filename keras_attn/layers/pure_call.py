"""Calls of layers as functions of everything that they depend on."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor


class PureCall:
    """Part of a layer as a function of tensors, weights and random states, without side effects.

    Args:
        layer: Whose variables the call uses, those of its random generators among them.
        function: Takes tensors and returns one tensor.
        *masks: For each tensor the mask that Keras is to propagate with it, or `None`.
    """

    def __init__(self, layer: keras.layers.Layer, function: Callable, *masks: Any) -> None:
        self._function = function
        self._masks = masks
        self._weights = layer.trainable_variables
        self._states = layer.non_trainable_variables

    def weights(self) -> list:
        """The weights' values, as tensors."""
        return [ops.convert_to_tensor(weight.value) for weight in self._weights]

    def states(self) -> list:
        """The values of what training leaves alone, random states among it, as tensors."""
        return [ops.copy(state.value) for state in self._states]

    def __call__(
        self, tensors: Sequence[Any], weights: Sequence[Any], states: Sequence[Any]
    ) -> tuple[Any, list]:
        """Calls the function with given weights and states.

        Returns:
            What the function returns, and the states after it.
        """
        masked = [with_mask(x, mask) for mask, x in zip(self._masks, tensors, strict=True)]
        values = zip((*self._weights, *self._states), (*weights, *states), strict=True)
        with keras.StatelessScope(state_mapping=list(values)) as scope:
            output = self._function(*masked)
        return output, [scope.get_current_value(state) for state in self._states]

    def assign(self, states: Sequence[Any], places: Sequence[int] | None = None) -> None:
        """Keeps the states after a call, or those in some places."""
        places = range(len(self._states)) if places is None else places
        for place, value in zip(places, states, strict=True):
            self._states[place].assign(value)


def mask_of(tensor: Tensor) -> Any:
    """The mask that Keras propagates with a tensor, or `None`."""
    return _MASK_OF(tensor)


def with_mask(tensor: Tensor, mask: Tensor) -> Any:
    """The tensor, with which Keras will propagate a mask; as it is where the mask is `None`."""
    return tensor if mask is None else _WITH_MASK((tensor, mask))


class _Plain(keras.layers.Layer):
    """A layer that no `keras.RematScope` computes again."""

    def rematerialized_call(self, layer_call, *args, **kwargs):
        return layer_call


class _MaskOf(_Plain):
    def call(self, tensor, mask=None):
        return mask

    def compute_mask(self, tensor, mask=None):
        return None


class _WithMask(_Plain):
    def call(self, inputs):
        return inputs[0]

    def compute_mask(self, inputs, previous_mask=None):
        return inputs[1]


# Made once: torch.compile cannot follow the making of a layer.
_MASK_OF = _MaskOf(name="mask", autocast=False)
_WITH_MASK = _WithMask(name="masked", autocast=False)
