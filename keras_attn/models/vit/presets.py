"""Sizes of encoders of images, numbers only."""

from keras_attn.models.presets import stack_config

_DOSOVITSKIY = "Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, Table 1"

# Blocks, width and heads, and the width of a patch; the feed-forward networks have four times the
# width.
_SIZES = {
    "vit_base_16": (12, 768, 12, 16),
    "vit_base_32": (12, 768, 12, 32),
    "vit_large_16": (24, 1024, 16, 16),
    "vit_large_32": (24, 1024, 16, 32),
    "vit_huge_14": (32, 1280, 16, 14),
}

PATCH_ENCODER_PRESETS = {
    "patch_tiny": {
        "description": "small classifier of gray images of 8 x 8 pixels (--data digits)",
        "paper": "sizes of our own",
        "config": {"image_size": 8, "patch_size": 4, "channels": 1, "class_token": False}
        | stack_config(3, 64, 4, 128, dropout=0.2),
    },
} | {
    name: {
        "description": f"Vision Transformer of {num_layers} blocks, width {hidden_dim}, patches of "
        f"{patch_size} x {patch_size} of 224 x 224 pixels",
        "paper": _DOSOVITSKIY,
        "config": {"image_size": 224, "patch_size": patch_size, "channels": 3, "class_token": True}
        | stack_config(num_layers, hidden_dim, num_heads, 4 * hidden_dim),
    }
    for name, (num_layers, hidden_dim, num_heads, patch_size) in _SIZES.items()
}
