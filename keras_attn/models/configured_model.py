"""Functional models whose configuration is what their constructors were given."""

from typing import Any

import keras

from keras_attn.layers.composite_layer import computing_policy, serialize_policies
from keras_attn.layers.configuration import Configured, split_options
from keras_attn.models.named_inputs import NamedInputs


class ConfiguredModel(Configured, NamedInputs):
    """A functional model that is saved as its constructor's arguments.

    Args:
        inputs: Keras inputs by name.
        outputs: What the model returns for them.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.
    """

    fixed_arguments = ("inputs", "outputs")

    def __init__(
        self,
        inputs: dict,
        outputs: Any,
        *,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        super().__init__(inputs, outputs, name=name, trainable=trainable)
        # By which `compile` knows whether to scale the loss; Keras would quantize by it again.
        self.dtype_policy = computing_policy(keras.dtype_policies.get(dtype))

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": serialize_policies(self),
        } | self.given_config()


def read_options(kind: type, options: dict[str, Any]) -> tuple[Any, keras.DTypePolicy, dict]:
    """Reads a constructor's keyword arguments.

    Args:
        kind: Dataclass of the model's sizes.
        options: Its fields, and arguments of `ConfiguredModel`.

    Returns:
        The sizes, the dtype policy, and the arguments of `ConfiguredModel` with that policy.
    """
    sizes, others = split_options(kind, options)
    dtype = keras.dtype_policies.get(others.get("dtype"))
    return sizes, dtype, others | {"dtype": dtype}
