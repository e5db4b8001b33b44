"""Transformers with synthesized attention."""

from keras_attn.models.presets import register_presets
from keras_attn.models.synthesizer.presets import SYNTHESIZER_PRESETS
from keras_attn.models.synthesizer.synthesizer_transformer import SynthesizerTransformer

__all__ = ["SynthesizerTransformer"]

register_presets("SynthesizerTransformer", SYNTHESIZER_PRESETS, "synthesizer")
