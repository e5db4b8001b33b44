"""Transformers: encoder-decoder, encoder and decoder-only."""

from keras_attn.models.presets import register_presets
from keras_attn.models.transformer.causal_transformer import CausalTransformer
from keras_attn.models.transformer.presets import (
    CAUSAL_TRANSFORMER_PRESETS,
    TRANSFORMER_ENCODER_PRESETS,
    TRANSFORMER_PRESETS,
)
from keras_attn.models.transformer.transformer import Transformer
from keras_attn.models.transformer.transformer_encoder import TransformerEncoder

__all__ = ["CausalTransformer", "Transformer", "TransformerEncoder"]

register_presets("Transformer", TRANSFORMER_PRESETS, "transformer")
register_presets(
    "TransformerEncoder",
    TRANSFORMER_ENCODER_PRESETS,
    "encoder",
    (
        *("classification", "multi_label_classification", "regression", "embedding"),
        *("token_classification", "rank", "question_answering"),
    ),
)
register_presets("CausalTransformer", CAUSAL_TRANSFORMER_PRESETS, "language_model", ("causal_lm",))
