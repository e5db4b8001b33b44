"""Models that are an encoder and what follows it."""

from typing import Any

import keras

from keras_attn.models.configured_model import ConfiguredModel
from keras_attn.validation import require


class EncoderModel(ConfiguredModel):
    """A functional model with an encoder as its attribute `encoder`.

    Args:
        inputs: Keras inputs by name.
        outputs: What the model returns for them.
        encoder: The encoder.
        **kwargs: Further arguments of `ConfiguredModel`.
    """

    def __init__(self, inputs: dict, outputs: Any, encoder: keras.Model, **kwargs):
        super().__init__(inputs, outputs, **kwargs)
        self.encoder = encoder
        self.max_length = getattr(encoder, "max_length", None)

    @staticmethod
    def _read(encoder: Any, options: dict[str, Any]) -> tuple[keras.DTypePolicy, dict[str, Any]]:
        """Returns the dtype policy, by default the encoder's, and the options with it."""
        require(isinstance(encoder, keras.Model), "`encoder` must be a model.", encoder=encoder)
        given = options.get("dtype")
        dtype = keras.dtype_policies.get(encoder.dtype_policy if given is None else given)
        return dtype, options | {"dtype": dtype}

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """The encoder's; what follows it is left out of GPTQ and AWQ by the argument `filters`."""
        return self.encoder.get_quantization_layer_structure(mode)
