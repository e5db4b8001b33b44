"""Workloads of speed measurements, the same for this package and others."""

from collections.abc import Mapping
from typing import Any

TRAIN_SMALL = "train-small"
TRAIN_BASE = "train-base"
CMUDICT = "cmudict"
DECODE_BASE = "decode-base"

_SMALL = {"hidden_dim": 256, "num_layers": 3, "num_heads": 4, "intermediate_dim": 1024}
_BASE = {"hidden_dim": 512, "num_layers": 6, "num_heads": 8, "intermediate_dim": 2048}
_TRAINED = {"vocabulary": 8000, "dropout": 0.1}

TRAIN_WORKLOADS = {
    TRAIN_SMALL: _SMALL | _TRAINED | {"batch": 64, "source": 24, "target": 24},
    TRAIN_BASE: _BASE | _TRAINED | {"batch": 32, "source": 32, "target": 32},
}

# Real words in batches of training; the others have random ids of one length.
REAL_WORKLOADS = {
    CMUDICT: _SMALL | {"intermediate_dim": 512, "dropout": 0.1, "batch_tokens": 4096, "batches": 40}
}

DECODE_WORKLOADS = {
    DECODE_BASE: _BASE
    | {"vocabulary": 8001, "batches": [1, 16, 64], "beams": [1, 4], "source": 18, "new_tokens": 32}
}


def model_sizes(workload: Mapping[str, Any]) -> dict[str, int]:
    """Returns the sizes of a workload's model, as arguments of `Transformer`."""
    return {name: workload[name] for name in _BASE}
