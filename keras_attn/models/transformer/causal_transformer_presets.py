"""Sizes of decoder-only Transformers, numbers only."""

CAUSAL_TRANSFORMER_PRESETS = {
    "lm_tiny": {
        "description": "small language model, quick to train",
        "paper": "sizes of our own",
        "config": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 512,
            "num_heads": 4,
            "dropout": 0.1,
            "norm_first": True,
            "rotary_positions": True,
        },
    },
}
