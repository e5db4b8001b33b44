"""Sizes of ETC, numbers only."""

from keras_attn.models.transformer.transformer_encoder_presets import TRANSFORMER_ENCODER_PRESETS

_AINSLIE = "Ainslie et al., 2020, https://arxiv.org/abs/2004.08483"
_TINY = TRANSFORMER_ENCODER_PRESETS["encoder_tiny"]

ETC_PRESETS = {
    "etc_tiny": {
        "description": "small classifier of long texts, quick to train",
        "paper": f"sizes of our own, the layers of {_AINSLIE}",
        "config": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 512,
            "num_heads": 4,
            "radius": 32,
            "num_units": 64,
            "norm_first": True,
        },
    },
    "etc_base": {
        "description": "the paper's base model, for texts of 4,096 tokens",
        "paper": f"{_AINSLIE}, section 4",
        "config": {
            "num_layers": 12,
            "hidden_dim": 768,
            "intermediate_dim": 3072,
            "num_heads": 12,
            "radius": 84,
            "num_units": 230,
        },
    },
}
