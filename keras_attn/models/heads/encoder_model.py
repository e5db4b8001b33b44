"""Models that are an encoder and what follows it."""

from typing import Any

import keras

from keras_attn.layers.composite_layer import serialize_policies
from keras_attn.layers.copies import deserialize_layers
from keras_attn.models.named_inputs import NamedInputs


class EncoderModel(NamedInputs):
    """A functional model with an encoder as its attribute `encoder`."""

    encoder: keras.Model

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """The encoder's; what follows it is left out of GPTQ and AWQ by the argument `filters`."""
        return self.encoder.get_quantization_layer_structure(mode)

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "dtype": serialize_policies(self),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**deserialize_layers(config, "encoder", custom_objects=custom_objects))
