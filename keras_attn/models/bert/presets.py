"""Sizes of BERT, numbers only."""

from keras_attn.models.recipes import EMBEDDING, MASKED_LANGUAGE_MODEL, TAGGING

_DEVLIN = "Devlin et al., 2019, https://arxiv.org/abs/1810.04805"
_TURC = "Turc et al., 2019, https://arxiv.org/abs/1908.08962"

_TOKENIZERS = {"text": {"kind": "word_piece", "vocabulary_size": 8_000, "lowercase": True}}

# Of tasks that would leave it untrained.
_WITHOUT_POOLER = {"tokenizers": _TOKENIZERS, "model": {"pooler": False}}

# From random weights; who goes on with published ones takes a much lower learning rate.
_RECIPE = {
    "task": "classify",
    "tokenizers": _TOKENIZERS,
    "metrics": ["exact_match"],
    "training": {
        "batch_tokens": 4_096,
        "schedule": "cosine",
        "learning_rate": 1e-4,
        "warmup_steps": 1_000,
        "label_smoothing": 0.0,
        "beta_2": 0.999,
        "epochs": 5,
    },
}

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
        "config": {
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": 4 * hidden_dim,
            "num_heads": hidden_dim // 64,
        },
        "recipe": _RECIPE,
        "other_recipes": {
            "embed": EMBEDDING | _WITHOUT_POOLER,
            "mlm": MASKED_LANGUAGE_MODEL | _WITHOUT_POOLER,
            "tag": TAGGING | {"model": {"pooler": False}},
        },
    }
    for name, (num_layers, hidden_dim, paper) in _SIZES.items()
}
