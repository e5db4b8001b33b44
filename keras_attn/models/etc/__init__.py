"""ETC, an encoder with global and local attention."""

from keras_attn.models.etc.etc import Etc
from keras_attn.models.etc.presets import ETC_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["Etc"]

register_presets("Etc", ETC_PRESETS, "etc", ("classify",))
