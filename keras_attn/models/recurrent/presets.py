"""Sizes of the recurrent encoder-decoders, numbers only."""

from keras_attn.models.recipes import LETTERS_TO_PHONEMES, TRANSLATION

_BAHDANAU = "attention of Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473"
_G2P = (
    "layers and width of the LSTM of g2p-seq2seq, https://github.com/cmusphinx/g2p-seq2seq "
    "(2 layers of 512)"
)
_SUTSKEVER = (
    "fixed context of Sutskever et al., 2014, https://arxiv.org/abs/1409.3215, with the GRU of "
    "Cho et al., 2014, https://arxiv.org/abs/1406.1078"
)
_WU = "Wu et al., 2016, https://arxiv.org/abs/1609.08144"

_SMALL_TRAINING = {
    "batch_tokens": 2_048,
    "schedule": "cosine",
    "learning_rate": 5e-3,
    "warmup_steps": 200,
    "label_smoothing": 0.1,
    "beta_2": 0.98,
    "clip_norm": 1.0,
    "epochs": 10,
}
_LARGE_TRAINING = _SMALL_TRAINING | {
    "batch_tokens": 4_096,
    "learning_rate": 1e-3,
    "warmup_steps": 500,
    "epochs": 20,
}

RECURRENT_PRESETS = {
    "lstm_2x64": {
        "description": "letters to phonemes, two layers of 64, quick to train",
        "paper": _BAHDANAU,
        "config": {"num_layers": 2, "hidden_dim": 64, "dropout": 0.05},
        "recipe": LETTERS_TO_PHONEMES | {"training": _SMALL_TRAINING | {"epochs": 40}},
    },
    "lstm_2x512": {
        "description": "letters to phonemes, two layers of 512",
        "paper": _G2P,
        "config": {"num_layers": 2, "hidden_dim": 512, "dropout": 0.3},
        "recipe": LETTERS_TO_PHONEMES | {"training": _LARGE_TRAINING},
    },
    "gru_2x64_fixed": {
        "description": "letters to phonemes without attention: a fixed context",
        "paper": _SUTSKEVER,
        "config": {
            "num_layers": 2,
            "hidden_dim": 64,
            "cell": "gru",
            "attention": None,
            "dropout": 0.1,
        },
        "recipe": LETTERS_TO_PHONEMES | {"training": _SMALL_TRAINING},
    },
}

GNMT_PRESETS = {
    "gnmt": {
        "description": "the paper's translation model, 8 and 8 layers of 1,024",
        "paper": _WU,
        "config": {"num_layers": 8, "hidden_dim": 1024, "dropout": 0.2},
        "recipe": TRANSLATION
        | {
            "tokenizers": {
                "shared": True,
                # The paper's shared wordpieces.
                "source": {
                    "kind": "sentencepiece",
                    "model_type": "bpe",
                    "vocabulary_size": 32_000,
                },
            },
            "decoding": {"beams": 3, "length_penalty": 0.2},
            "training": {
                "batch_tokens": 8_192,
                "schedule": "inverse_square_root",
                "learning_rate": 2e-4,
                "warmup_steps": 200,
                "clip_norm": 5.0,
                # The paper's first stage; its second goes on with plain gradient descent.
                "steps": 60_000,
            },
        },
    },
    "gnmt_small": {
        "description": "letters to phonemes, the same with 4 and 4 layers of 64",
        "paper": f"sizes of our own, the connections of {_WU}",
        "config": {"num_layers": 4, "hidden_dim": 64, "dropout": 0.1},
        "recipe": LETTERS_TO_PHONEMES | {"training": _SMALL_TRAINING},
    },
}
