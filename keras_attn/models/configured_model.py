"""Functional models whose configuration is what their constructors were given."""

from typing import Any

import keras

from keras_attn.layers.composite_layer import computing_policy, serialize_policies
from keras_attn.layers.configuration import Configured
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

    def __init__(
        self,
        inputs: dict,
        outputs: Any,
        *,
        dtype: keras.DTypePolicy,
        name: str | None,
        trainable: bool,
    ):
        super().__init__(inputs, outputs, name=name, trainable=trainable)
        # By which `compile` knows whether to scale the loss; Keras would quantize by it again.
        self.dtype_policy = computing_policy(dtype)

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": serialize_policies(self),
        } | self.given_config()


def policy_of(dtype: Any) -> keras.DTypePolicy:
    """The dtype policy that an argument `dtype` names; Keras' global one for `None`."""
    return keras.dtype_policies.get(dtype)
