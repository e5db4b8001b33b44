"""GPT-2."""

from keras_attn.models.gpt2.gpt2 import GPT2
from keras_attn.models.gpt2.presets import GPT2_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["GPT2"]

register_presets("GPT2", GPT2_PRESETS, "gpt2", ("causal_lm",))
