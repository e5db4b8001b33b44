"""What a search varies by default, for each family of models."""

from collections.abc import Mapping
from typing import Any

from keras_attn.tuning.search_space import SearchSpace
from keras_attn.validation import require_one_of

_TRAINING = {
    "training.learning_rate": {"min": 3e-4, "max": 1e-2, "log": True},
    "training.warmup_steps": {"min": 100, "max": 1_600, "step": 2, "log": True},
    "training.batch_tokens": [512, 1_024, 2_048, 4_096, 8_192],
}

SPACES: Mapping[str, Mapping[str, Any]] = {
    "Transformer": {
        "model.num_layers": {"min": 1, "max": 6},
        "model.hidden_dim": [64, 128, 256, 512],
        "model.intermediate_dim": [256, 512, 1_024, 2_048],
        "model.num_heads": [1, 2, 4, 8],
        "model.dropout": {"min": 0.0, "max": 0.4, "step": 0.05},
        "model.norm_first": [True, False],
        "positions": {
            "sinusoidal": {},
            "learned": {"model.learned_positions": 256},
            "rotary": {"model.rotary_positions": True},
        },
        **_TRAINING,
    },
}


def family_space(family: str) -> SearchSpace:
    """The space that is searched by default for a family of models; UserError where none is."""
    require_one_of("family", family, SPACES)
    return SearchSpace(SPACES[family])
