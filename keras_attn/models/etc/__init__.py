"""ETC, an encoder with global and local attention."""

from keras_attn.models.etc.etc import ETC
from keras_attn.models.etc.presets import ETC_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["ETC"]

register_presets(
    "ETC",
    ETC_PRESETS,
    "etc",
    ("classification", "multi_label_classification", "regression", "rank"),
)
