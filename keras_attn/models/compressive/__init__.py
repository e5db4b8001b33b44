"""Compressive Transformer and Transformer-XL."""

from keras_attn.models.compressive.compressive_transformer import CompressiveTransformer
from keras_attn.models.compressive.presets import COMPRESSIVE_TRANSFORMER_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["CompressiveTransformer"]

register_presets(
    "CompressiveTransformer", COMPRESSIVE_TRANSFORMER_PRESETS, "compressive", ("causal_lm",)
)
