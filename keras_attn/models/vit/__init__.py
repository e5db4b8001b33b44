"""Vision Transformer."""

from keras_attn.models.presets import register_presets
from keras_attn.models.vit.patch_encoder import PatchEncoder
from keras_attn.models.vit.presets import PATCH_ENCODER_PRESETS

__all__ = ["PatchEncoder"]

register_presets("PatchEncoder", PATCH_ENCODER_PRESETS, "vit", ("image_classification",))
