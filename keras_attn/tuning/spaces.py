"""Default search spaces for each family of models."""

from collections.abc import Mapping
from typing import Any

from keras_attn.layers.attention.registry import ATTENTION
from keras_attn.training.task_runs.base import MOST_TOKENS
from keras_attn.tuning.search_space import SearchSpace
from keras_attn.validation import require_one_of

_TRAINING = {
    "training.learning_rate": {"min": 3e-4, "max": 1e-2, "log": True},
    "training.warmup_steps": {"min": 100, "max": 1_600, "step": 2, "log": True},
    "training.batch_tokens": [512, 1_024, 2_048, 4_096, 8_192],
}
_DROPOUT = {"min": 0.0, "max": 0.4, "step": 0.05}
_WIDTHS = [64, 128, 256, 512]

_BLOCKS = {
    "model.num_layers": {"min": 1, "max": 6},
    "model.hidden_dim": _WIDTHS,
    "model.intermediate_dim": [256, 512, 1_024, 2_048],
    "model.num_heads": [1, 2, 4, 8],
    "model.dropout": _DROPOUT,
    "model.norm_first": [True, False],
}
_BLOCKS_OF_ONE_NORM = {name: _BLOCKS[name] for name in _BLOCKS if name != "model.norm_first"}
_ADDED_POSITIONS = {"sinusoidal": {}, "learned": {"model.learned_positions": MOST_TOKENS}}
_POSITIONS = _ADDED_POSITIONS | {"rotary": {"model.rotary_positions": True}}

_MODELS: Mapping[str, Mapping[str, Any]] = {
    "Transformer": {**_BLOCKS, "positions": _POSITIONS},
    "SynthesizerTransformer": {
        **_BLOCKS,
        "kinds": {
            "dense": {"model.scores": ["dense"]},
            "random": {"model.scores": ["random"]},
            "random and dense": {"model.scores": ["random", "dense"]},
            "random and dot product": {"model.scores": ["random", "dot_product"]},
        },
    },
    "T5": {
        **_BLOCKS_OF_ONE_NORM,
        "model.gated": [True, False],
        "model.activation": ["relu", "gelu_tanh"],
    },
    "TransformerEncoder": {
        **_BLOCKS,
        "attention.name": list(ATTENTION),
        # Not all of these mechanisms support rotary positions.
        "positions": _ADDED_POSITIONS,
    },
    "PatchEncoder": {
        **_BLOCKS,
        "model.class_token": [True, False],
        "model.pooling": ["mean", "max", "mean_max", "first"],
        "model.random_shift": [0, 1, 2],
        "attention.name": list(ATTENTION),
        "positions": {
            "sinusoidal": {"model.learned_positions": False},
            "learned": {"model.learned_positions": True},
        },
    },
    "Forecaster": {
        **_BLOCKS,
        "model.num_layers": {"min": 1, "max": 4},
        "model.hidden_dim": [16, 32, 64, 128],
        "model.intermediate_dim": [32, 64, 128, 256],
        "training.learning_rate": {"min": 1e-3, "max": 1e-2, "log": True},
        "training.warmup_steps": {"min": 25, "max": 200, "step": 2, "log": True},
        "attention.name": list(ATTENTION),
    },
    "ETC": {
        **_BLOCKS,
        "model.radius": [8, 16, 32, 64],
        "model.unit_length": [8, 16, 32],
    },
    "Bert": {**_BLOCKS_OF_ONE_NORM, "attention.name": list(ATTENTION)},
    "GPT2": {**_BLOCKS_OF_ONE_NORM},
    "CausalTransformer": {**_BLOCKS, "positions": _POSITIONS},
    "CompressiveTransformer": {
        **_BLOCKS,
        "model.segment_length": [16, 32, 64, 128],
        "model.memory_length": [16, 32, 64, 128],
        "model.compressed_length": [0, 16, 32, 64, 128],
        "model.compression": ["convolution", "dilated_convolution", "mean", "max"],
    },
    "Reformer": {
        **_BLOCKS_OF_ONE_NORM,
        "model.num_buckets": [8, 16, 32],
        "model.num_hashes": [1, 2, 4],
        "model.chunk_length": [16, 32, 64],
    },
    "RecurrentSeq2Seq": {
        "model.num_layers": {"min": 1, "max": 4},
        "model.hidden_dim": _WIDTHS,
        "model.cell": ["lstm", "gru"],
        "model.bidirectional": [True, False],
        "attends": {
            "additive": {"model.attention": "additive"},
            "luong dot": {"model.attention": "luong", "model.score": "dot"},
            "luong general": {"model.attention": "luong", "model.score": "general"},
            "fixed context": {"model.attention": None},
        },
        "model.dropout": _DROPOUT,
    },
    "GNMT": {
        "model.num_layers": {"min": 2, "max": 8},
        "model.hidden_dim": _WIDTHS,
        "model.tie_output": [True, False],
        "model.dropout": _DROPOUT,
    },
    "ConvSeq2Seq": {
        "model.num_layers": {"min": 2, "max": 8},
        "model.decoder_layers": {"min": 2, "max": 8},
        "model.hidden_dim": _WIDTHS,
        "model.kernel_size": [3, 5],
        "model.dropout": _DROPOUT,
    },
}

SPACES = {family: {**space, **_TRAINING, **space} for family, space in _MODELS.items()}


def family_space(family: str) -> SearchSpace:
    """Returns the default search space of a family of models; raises UserError if none."""
    require_one_of("family", family, SPACES)
    return SearchSpace(SPACES[family])
