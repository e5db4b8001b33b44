"""Sizes of BERT, numbers only."""

from keras_attn.models.presets import stack_config

_DEVLIN = "Devlin et al., 2019, https://arxiv.org/abs/1810.04805"
_TURC = "Turc et al., 2019, https://arxiv.org/abs/1908.08962"

# Blocks and width; each head has a size of 64, and the feed-forward networks four times the width.
_SIZES = {
    "bert_tiny": (2, 128, _TURC),
    "bert_mini": (4, 256, _TURC),
    "bert_small": (4, 512, _TURC),
    "bert_medium": (8, 512, _TURC),
    "bert_base": (12, 768, _DEVLIN),
    "bert_large": (24, 1024, _DEVLIN),
}

BERT_PRESETS = {
    name: {
        "description": f"BERT of {num_layers} blocks, width {hidden_dim}",
        "paper": paper,
        "config": stack_config(num_layers, hidden_dim, hidden_dim // 64, 4 * hidden_dim),
    }
    for name, (num_layers, hidden_dim, paper) in _SIZES.items()
}
