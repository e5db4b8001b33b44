"""Model families, built from the layers of this package."""

from keras_attn.models.causal_transformer import CausalTransformer
from keras_attn.models.presets import PRESETS, Preset, get_preset
from keras_attn.models.sequence_classifier import SequenceClassifier
from keras_attn.models.transformer import Transformer
from keras_attn.models.transformer_encoder import TransformerEncoder

__all__ = [
    "PRESETS",
    "CausalTransformer",
    "Preset",
    "SequenceClassifier",
    "Transformer",
    "TransformerEncoder",
    "get_preset",
]
