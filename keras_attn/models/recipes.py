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
