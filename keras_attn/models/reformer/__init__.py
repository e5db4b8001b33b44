"""Reformer."""

from keras_attn.models.presets import register_presets
from keras_attn.models.reformer.presets import REFORMER_PRESETS
from keras_attn.models.reformer.reformer import Reformer

__all__ = ["Reformer"]

register_presets("Reformer", REFORMER_PRESETS, "reformer", ("causal_lm",))
