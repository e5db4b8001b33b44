"""Sizes of encoders, numbers only."""

from keras_attn.models.recipes import EMBEDDING, TAGGING

_CHARACTERS = {"text": {"kind": "characters"}}

TRANSFORMER_ENCODER_PRESETS = {
    "encoder_tiny": {
        "description": "small classifier of texts, quick to train",
        "paper": "sizes of our own",
        "config": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 512,
            "num_heads": 4,
            "dropout": 0.1,
            "norm_first": True,
        },
        "recipe": {
            "task": "classify",
            "tokenizers": _CHARACTERS,
            "metrics": ["exact_match"],
            "training": {
                "batch_tokens": 4_096,
                "schedule": "cosine",
                "learning_rate": 1e-3,
                "warmup_steps": 200,
                "label_smoothing": 0.1,
                "beta_2": 0.98,
                "epochs": 5,
            },
        },
        "other_recipes": {"embed": EMBEDDING | {"tokenizers": _CHARACTERS}, "tag": TAGGING},
    },
    "listops_tiny": {
        "description": "encoder for ListOps of up to 64 tokens (--data listops)",
        "paper": "task of Nangia and Bowman, 2018, https://arxiv.org/abs/1804.06028; our sizes",
        "config": {
            "num_layers": 2,
            "hidden_dim": 64,
            "intermediate_dim": 128,
            "num_heads": 4,
            "dropout": 0.1,
            "norm_first": True,
        },
        "recipe": {
            "task": "classify",
            "tokenizers": {"text": {"kind": "symbols"}},
            "metrics": ["exact_match"],
            "training": {
                "batch_tokens": 4_096,
                "schedule": "cosine",
                "learning_rate": 2e-3,
                "warmup_steps": 200,
                "label_smoothing": 0.0,
                "beta_2": 0.98,
                "epochs": 10,
            },
        },
    },
}
