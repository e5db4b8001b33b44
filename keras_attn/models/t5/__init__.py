"""T5."""

from keras_attn.models.presets import register_presets
from keras_attn.models.t5.presets import T5_PRESETS
from keras_attn.models.t5.t5 import T5

__all__ = ["T5"]

register_presets("T5", T5_PRESETS, "t5", ("seq2seq", "span_corruption"))
