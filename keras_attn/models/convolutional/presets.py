"""Sizes of the convolutional encoder-decoders, numbers only."""

_GEHRING = "Gehring et al., 2017, https://arxiv.org/abs/1705.03122"
_SHARED = {"kernel_size": 3, "dropout": 0.2}

CONV_PRESETS = {
    "conv_s2s": {
        "description": "letters to phonemes, four layers of 256",
        "paper": f"sizes of our own, the connections of {_GEHRING}",
        "config": _SHARED
        | {"num_layers": 4, "decoder_layers": 3, "hidden_dim": 256, "learned_positions": 256},
    },
    "conv_s2s_20x512": {
        "description": "the paper's model for English-Romanian, 20 and 20 layers of 512",
        "paper": f"{_GEHRING}, English-Romanian",
        "config": _SHARED | {"num_layers": 20, "hidden_dim": 512, "learned_positions": 1024},
    },
}
