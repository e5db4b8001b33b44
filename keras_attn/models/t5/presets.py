"""Sizes of T5, numbers only."""

_RAFFEL = "Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 3.7"
_V1_1 = (
    "version 1.1 of the authors' code, "
    "https://github.com/google-research/text-to-text-transfer-transformer"
)


# Blocks of either side, width, heads, the size of each, and of the feed-forward network.
_SIZES = {
    "t5_small": (6, 512, 8, 64, 2048),
    "t5_base": (12, 768, 12, 64, 3072),
    "t5_large": (24, 1024, 16, 64, 4096),
    "t5_3b": (24, 1024, 32, 128, 16_384),
    "t5_11b": (24, 1024, 128, 128, 65_536),
}
_SIZES_V1_1 = {
    "t5_v1_1_small": (8, 512, 6, 64, 1024),
    "t5_v1_1_base": (12, 768, 12, 64, 2048),
    "t5_v1_1_large": (24, 1024, 16, 64, 2816),
    "t5_v1_1_xl": (24, 2048, 32, 64, 5120),
    "t5_v1_1_xxl": (24, 4096, 64, 64, 10_240),
}
_CHANGES_V1_1 = {"activation": "gelu_tanh", "gated": True, "tie_output": False, "dropout": 0.0}


def _preset(sizes, paper, version="T5", **changes):
    num_layers, hidden_dim, num_heads, key_dim, intermediate_dim = sizes
    return {
        "description": f"{version} of {num_layers} and {num_layers} blocks, width {hidden_dim}",
        "paper": paper,
        "config": {
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "num_heads": num_heads,
            "key_dim": key_dim,
            "intermediate_dim": intermediate_dim,
            **changes,
        },
    }


T5_PRESETS = {
    "t5_tiny": _preset((4, 128, 4, 32, 256), "sizes of our own", dropout=0.3),
    **{name: _preset(sizes, _RAFFEL) for name, sizes in _SIZES.items()},
    **{
        name: _preset(sizes, _V1_1, "T5 1.1", **_CHANGES_V1_1)
        for name, sizes in _SIZES_V1_1.items()
    },
}
