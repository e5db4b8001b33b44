"""GPT-2."""

from keras_attn.models.gpt2.gpt2 import Gpt2
from keras_attn.models.gpt2.presets import GPT2_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["Gpt2"]

register_presets("Gpt2", GPT2_PRESETS, "gpt2", ("lm",))
