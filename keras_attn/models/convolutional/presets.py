"""Sizes of the convolutional encoder-decoders, numbers only."""

from keras_attn.models.recipes import LETTERS_TO_PHONEMES, TRANSLATION

_GEHRING = "Gehring et al., 2017, https://arxiv.org/abs/1705.03122"

CONV_PRESETS = {
    "conv_s2s": {
        "description": "letters to phonemes, four layers of 256",
        "paper": f"sizes of our own, the connections of {_GEHRING}",
        "config": {
            "num_layers": 4,
            "decoder_layers": 3,
            "hidden_dim": 256,
            "kernel_size": 3,
            "learned_positions": 256,
            "dropout": 0.2,
        },
        "recipe": LETTERS_TO_PHONEMES
        | {
            "training": {
                "batch_tokens": 2_048,
                "schedule": "cosine",
                "learning_rate": 2e-3,
                "warmup_steps": 400,
                "label_smoothing": 0.1,
                "beta_2": 0.98,
                "clip_norm": 0.1,
                "epochs": 30,
            },
        },
    },
    "conv_s2s_20x512": {
        "description": "the paper's model for English-Romanian, 20 and 20 layers of 512",
        "paper": f"{_GEHRING}, English-Romanian",
        "config": {
            "num_layers": 20,
            "hidden_dim": 512,
            "kernel_size": 3,
            "learned_positions": 1024,
            "dropout": 0.2,
        },
        "recipe": TRANSLATION
        | {
            "decoding": {"beams": 5, "length_penalty": 1.0},
            "training": {
                "batch_tokens": 8_192,
                "schedule": "inverse_square_root",
                "learning_rate": 5e-4,
                "warmup_steps": 4_000,
                "clip_norm": 0.1,
                "steps": 200_000,
            },
        },
    },
}
