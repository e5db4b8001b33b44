"""What all backbones share: presets, and configurations with attention layers in them."""

import types
from typing import Any, ClassVar

import keras

from keras_attn.layers.copies import deserialize_layers, serialize_layer
from keras_attn.models.presets import get_preset


class Backbone(keras.Model):
    """A functional model over token ids that is built from sizes and attention layers.

    A subclass builds its layers, calls the constructor of `keras.Model` with inputs and outputs,
    and then `_keep_arguments`.
    """

    attention_arguments: ClassVar[tuple[str, ...]] = ()
    """Names of the arguments that are attention layers."""

    def _keep_arguments(self, **arguments: Any) -> None:
        # Not a dict, in which Keras would take the attention layers for parts of the model.
        self._arguments = types.SimpleNamespace(**arguments)

    @classmethod
    def from_preset(cls, name: str, vocabulary_size: int, **overrides) -> "Backbone":
        """Builds an untrained model of a preset's sizes.

        Args:
            name: Name of the preset (`keras-attn presets` lists them).
            vocabulary_size: Number of tokens, of the source where there is a target too.
            **overrides: Arguments of the constructor that take the place of the preset's.

        Returns:
            The model.

        Raises:
            UserError: No preset of this family has that name.
        """
        preset = get_preset(name, family=cls.__name__)
        return cls(vocabulary_size, **(preset.config | overrides))

    def get_config(self):
        config = {"name": self.name, "trainable": self.trainable} | vars(self._arguments)
        return config | {part: serialize_layer(config[part]) for part in self.attention_arguments}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        parts = cls.attention_arguments
        return cls(**deserialize_layers(config, *parts, custom_objects=custom_objects))
