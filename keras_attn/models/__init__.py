"""Model families, built from the layers of this package."""

from keras_attn.models.presets import PRESETS, Preset, get_preset
from keras_attn.models.transformer import Transformer

__all__ = ["PRESETS", "Preset", "Transformer", "get_preset"]
