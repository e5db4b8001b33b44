"""Sizes of the recurrent encoder-decoders, numbers only."""

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
_TINY = {"num_layers": 2, "hidden_dim": 64}

RECURRENT_PRESETS = {
    "lstm_2x64": {
        "description": "letters to phonemes, two layers of 64, quick to train",
        "paper": _BAHDANAU,
        "config": _TINY | {"dropout": 0.05},
    },
    "lstm_2x512": {
        "description": "letters to phonemes, two layers of 512",
        "paper": _G2P,
        "config": {"num_layers": 2, "hidden_dim": 512, "dropout": 0.3},
    },
    "gru_2x64_fixed": {
        "description": "letters to phonemes without attention: a fixed context",
        "paper": _SUTSKEVER,
        "config": _TINY | {"cell": "gru", "attention": None, "dropout": 0.1},
    },
}

GNMT_PRESETS = {
    "gnmt": {
        "description": "the paper's translation model, 8 and 8 layers of 1,024",
        "paper": _WU,
        "config": {"num_layers": 8, "hidden_dim": 1024, "dropout": 0.2},
    },
    "gnmt_small": {
        "description": "letters to phonemes, the same with 4 and 4 layers of 64",
        "paper": f"sizes of our own, the connections of {_WU}",
        "config": {"num_layers": 4, "hidden_dim": 64, "dropout": 0.1},
    },
}
