"""Models that are an encoder and what follows it."""

from typing import Any

import keras
from keras import ops

from keras_attn.models.configured_model import ConfiguredModel, id_inputs, id_tensor
from keras_attn.validation import require

TOKEN_IDS, SEGMENT_IDS = "token_ids", "segment_ids"


class EncoderModel(ConfiguredModel):
    """A functional model with an encoder as its attribute `encoder`.

    Args:
        inputs: Keras inputs by name.
        outputs: What the model returns for them.
        encoder: The encoder.
        **kwargs: Further arguments of `ConfiguredModel`.
    """

    optional_inputs = (SEGMENT_IDS,)

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

    def _completed(self, inputs):
        if SEGMENT_IDS not in self.input or SEGMENT_IDS in inputs:
            return inputs
        token_ids = id_tensor(inputs[TOKEN_IDS])
        return {TOKEN_IDS: token_ids, SEGMENT_IDS: ops.zeros_like(token_ids)}

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """The encoder's; what follows it is left out of GPTQ and AWQ by the argument `filters`."""
        return self.encoder.get_quantization_layer_structure(mode)


def token_inputs(encoder: keras.Model) -> dict[str, keras.KerasTensor]:
    """Makes the inputs of a model over an encoder of token ids, with segments if it has some."""
    inputs = getattr(encoder, "input", None)
    has_segments = isinstance(inputs, dict) and SEGMENT_IDS in inputs
    return id_inputs(TOKEN_IDS, *([SEGMENT_IDS] if has_segments else []))
