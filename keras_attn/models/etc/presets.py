"""Sizes of ETC, numbers only."""

from keras_attn.models.presets import stack_config

_AINSLIE = "Ainslie et al., 2020, https://arxiv.org/abs/2004.08483"

ETC_PRESETS = {
    "etc_tiny": {
        "description": "small classifier of long texts, quick to train",
        "paper": f"sizes of our own, the layers of {_AINSLIE}",
        "config": stack_config(2, 128, 4, 512, radius=32, num_units=64, norm_first=True),
    },
    "etc_base": {
        "description": "the paper's base model, for texts of 4,096 tokens",
        "paper": f"{_AINSLIE}, section 4",
        "config": stack_config(12, 768, 12, 3072, radius=84, num_units=230),
    },
}
