"""Sizes of encoders, numbers only."""

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
    },
    "listops_tiny": {
        "tasks": ("classification",),
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
    },
}
