"""Workloads of speed measurements, the same for this package and others."""

TRAIN_SMALL = "train-small"
TRAIN_BASE = "train-base"
CMUDICT = "cmudict"
DECODE_BASE = "decode-base"

TRAIN_WORKLOADS = {
    TRAIN_SMALL: {
        "hidden_dim": 256,
        "layers": 3,
        "num_heads": 4,
        "intermediate_dim": 1024,
        "vocabulary": 8000,
        "batch": 64,
        "source": 24,
        "target": 24,
        "dropout": 0.1,
    },
    TRAIN_BASE: {
        "hidden_dim": 512,
        "layers": 6,
        "num_heads": 8,
        "intermediate_dim": 2048,
        "vocabulary": 8000,
        "batch": 32,
        "source": 32,
        "target": 32,
        "dropout": 0.1,
    },
}

# Real words in batches of training; the others have random ids of one length.
REAL_WORKLOADS = {
    CMUDICT: {
        "hidden_dim": 256,
        "layers": 3,
        "num_heads": 4,
        "intermediate_dim": 512,
        "dropout": 0.1,
        "batch_tokens": 4096,
        "batches": 40,
    },
}

DECODE_WORKLOADS = {
    DECODE_BASE: {
        "hidden_dim": 512,
        "layers": 6,
        "num_heads": 8,
        "intermediate_dim": 2048,
        "vocabulary": 8001,
        "batches": [1, 16, 64],
        "beams": [1, 4],
        "source": 18,
        "new_tokens": 32,
    },
}
