"""Sections of run settings that presets of several families share."""

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
