"""Activations by name: Keras' own, and those that checkpoints of others need."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_attn")
def gelu_tanh(x: Tensor) -> Any:
    """GELU with its normal distribution approximated by tanh, as GPT-2 and T5 v1.1 compute it.

    Args:
        x: Tensor of any shape.

    Returns:
        A tensor of the same shape.

    Reference:
        Hendrycks and Gimpel, 2016, https://arxiv.org/abs/1606.08415, section 2.
    """
    return keras.activations.gelu(x, approximate=True)


@keras.saving.register_keras_serializable(package="keras_attn")
def quick_gelu(x: Tensor) -> Any:
    """GELU with its normal distribution approximated by a sigmoid: x · sigmoid(1.702 x).

    Args:
        x: Tensor of any shape.

    Returns:
        A tensor of the same shape.

    Reference:
        Hendrycks and Gimpel, 2016, https://arxiv.org/abs/1606.08415, section 2.
    """
    return x * ops.sigmoid(1.702 * x)


@keras.saving.register_keras_serializable(package="keras_attn")
def clipped_gelu(x: Tensor) -> Any:
    """GELU cut to numbers from -10 to 10.

    Args:
        x: Tensor of any shape.

    Returns:
        A tensor of the same shape.

    Reference:
        Wu et al., 2020, https://arxiv.org/abs/2004.09602, section 3.2.
    """
    return ops.clip(keras.activations.gelu(x, approximate=False), -10.0, 10.0)


@keras.saving.register_keras_serializable(package="keras_attn")
def squared_relu(x: Tensor) -> Any:
    """The square of what is above 0.

    Args:
        x: Tensor of any shape.

    Returns:
        A tensor of the same shape.

    Reference:
        So et al., 2021, https://arxiv.org/abs/2109.08668, section 4.
    """
    return ops.square(ops.relu(x))


_OWN = {one.__name__: one for one in (gelu_tanh, quick_gelu, clipped_gelu, squared_relu)}


def get_activation(activation: Any) -> Callable:
    """Finds an activation.

    Args:
        activation: `"gelu_tanh"`, `"quick_gelu"`, `"clipped_gelu"`, `"squared_relu"`, or what
            `keras.activations.get` takes.

    Returns:
        The function.

    Raises:
        ValueError: There is none of that name.
    """
    if isinstance(activation, str) and activation in _OWN:
        return _OWN[activation]
    return keras.activations.get(activation)


def serialize_activation(activation: Any) -> Any:
    """The name of an activation, or its configuration where it has none.

    Args:
        activation: What `get_activation` takes.

    Returns:
        What `get_activation` makes the activation of again.

    Raises:
        ValueError: There is none of that name.
    """
    function = get_activation(activation)
    if function in _OWN.values():
        return function.__name__
    return keras.activations.serialize(function)
