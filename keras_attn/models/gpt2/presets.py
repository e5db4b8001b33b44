"""Sizes of GPT-2, numbers only."""

_RADFORD = 'Radford et al., 2019, "Language Models are Unsupervised Multitask Learners", Table 2'

# Blocks and width; each head has a size of 64, and the feed-forward networks four times the width.
_SIZES = {
    "gpt2_tiny": (2, 128, "sizes of our own"),
    "gpt2_small": (12, 768, _RADFORD),
    "gpt2_medium": (24, 1024, _RADFORD),
    "gpt2_large": (36, 1280, _RADFORD),
    "gpt2_xl": (48, 1600, _RADFORD),
}

GPT2_PRESETS = {
    name: {
        "description": f"GPT-2 of {num_layers} blocks, width {hidden_dim}",
        "paper": paper,
        "config": {
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "num_heads": hidden_dim // 64,
        },
    }
    for name, (num_layers, hidden_dim, paper) in _SIZES.items()
}
