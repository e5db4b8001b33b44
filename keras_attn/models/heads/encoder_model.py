"""Models that are an encoder and what follows it."""

from typing import Any

import keras

from keras_attn.models.configured_model import ConfiguredModel


class EncoderModel(ConfiguredModel):
    """A functional model with an encoder as its attribute `encoder`.

    Args:
        inputs: Keras inputs by name.
        outputs: What the model returns for them.
        encoder: The encoder.
        dtype: Dtype policy of the layers.
        name: Name of the model.
        trainable: Whether its weights are to be trained.
    """

    def __init__(
        self,
        inputs: dict,
        outputs: Any,
        encoder: keras.Model,
        *,
        dtype: keras.DTypePolicy,
        name: str | None,
        trainable: bool,
    ):
        super().__init__(inputs, outputs, dtype=dtype, name=name, trainable=trainable)
        self.encoder = encoder
        self.max_length = getattr(encoder, "max_length", None)

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """The encoder's; what follows it is left out of GPTQ and AWQ by the argument `filters`."""
        return self.encoder.get_quantization_layer_structure(mode)
