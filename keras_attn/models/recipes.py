"""Sections of run settings that presets of several families share."""

from collections.abc import Mapping
from typing import Any

# Joint pieces of source and target, one embedding for both: the 37,000 of "Attention Is All You
# Need" for English-German.
TRANSLATION = {
    "tokenizers": {
        "shared": True,
        "source": {"kind": "sentencepiece", "model_type": "bpe", "vocabulary_size": 37_000},
    },
    "metrics": ["bleu", "chrf"],
    "decoding": {"beams": 4, "length_penalty": 0.6},
}

LETTERS_TO_PHONEMES = {
    "tokenizers": {
        "shared": False,
        "source": {"kind": "characters", "lowercase": True},
        "target": {"kind": "symbols"},
    },
    "metrics": ["per", "wer"],
    "decoding": {"beams": 4, "length_penalty": 0.6},
}

# Of small language models.
LANGUAGE_MODEL = {
    "task": "lm",
    "tokenizers": {"text": {"kind": "characters"}},
    "training": {
        "batch_tokens": 4_096,
        "schedule": "cosine",
        "learning_rate": 3e-3,
        "warmup_steps": 200,
        # Of which perplexity knows nothing.
        "label_smoothing": 0.0,
        "beta_2": 0.98,
        "epochs": 10,
    },
}

# Vectors of texts, from random weights; without tokenizers.
EMBEDDING = {
    "task": "embed",
    "metrics": ["mrr", "recall_at_1", "recall_at_10"],
    "training": {
        "batch_tokens": 4_096,
        "schedule": "cosine",
        "learning_rate": 5e-4,
        "warmup_steps": 200,
        "label_smoothing": 0.0,
        "beta_2": 0.999,
        "epochs": 10,
    },
}

# Tags of words, from random weights. Capitals tell names.
TAGGING = {
    "task": "tag",
    "tokenizers": {"text": {"kind": "word_piece", "vocabulary_size": 8_000}},
    "metrics": ["tag_accuracy", "span_f1"],
    "training": {
        "batch_tokens": 2_048,
        "schedule": "cosine",
        "learning_rate": 1e-3,
        "warmup_steps": 200,
        "label_smoothing": 0.0,
        "beta_2": 0.999,
        "epochs": 10,
    },
}

# Without tokenizers.
MASKED_LANGUAGE_MODEL = {
    "task": "mlm",
    "training": {
        "batch_tokens": 4_096,
        "schedule": "cosine",
        "learning_rate": 5e-4,
        "warmup_steps": 500,
        "label_smoothing": 0.0,
        "beta_2": 0.999,
        "weight_decay": 0.01,
        "epochs": 10,
    },
}

# T5's pre-training; without the size of its vocabulary.
SPAN_CORRUPTION = {
    "task": "span_corruption",
    "decoding": {"beams": 1},
    "training": {
        "batch_tokens": 8_192,
        "schedule": "inverse_square_root",
        "learning_rate": 1e-3,
        "warmup_steps": 2_000,
        "label_smoothing": 0.0,
        "epochs": 10,
    },
}

FINE_TUNING: Mapping[str, Mapping[str, Any]] = {
    "seq2seq": {
        "training": {
            "schedule": "cosine",
            "learning_rate": 1e-4,
            "warmup_steps": 100,
            # Weights that were trained without it would first unlearn to be certain.
            "label_smoothing": 0.0,
            "epochs": 3,
        },
    },
    "classify": {
        "metrics": ["exact_match"],
        "training": {
            "batch_tokens": 2_048,
            "schedule": "cosine",
            "learning_rate": 5e-5,
            "warmup_steps": 100,
            "label_smoothing": 0.0,
            "beta_2": 0.999,
            "weight_decay": 0.01,
            "epochs": 3,
        },
    },
    "tag": {
        "metrics": TAGGING["metrics"],
        "training": TAGGING["training"]
        | {"learning_rate": 5e-5, "warmup_steps": 100, "weight_decay": 0.01, "epochs": 3},
    },
    "embed": {
        "metrics": EMBEDDING["metrics"],
        "training": EMBEDDING["training"]
        | {"learning_rate": 5e-5, "warmup_steps": 100, "epochs": 3},
    },
    "mlm": {
        "training": MASKED_LANGUAGE_MODEL["training"]
        | {"learning_rate": 5e-5, "warmup_steps": 100, "epochs": 3},
    },
    "span_corruption": {
        "training": SPAN_CORRUPTION["training"]
        | {"learning_rate": 1e-4, "warmup_steps": 100, "epochs": 3},
    },
}
"""Sections for runs that go on from trained weights, by the task."""
