"""Losses, metrics, learning rates and the trainer.

Names are imported when first used: losses, metrics, schedules need only Keras, the rest TensorFlow.
"""

import importlib
from typing import Any

_HOME = {
    "TokenCrossEntropy": "loop.losses",
    "TokenAccuracy": "loop.losses",
    "Perplexity": "loop.losses",
    "InverseSquareRoot": "loop.schedules",
    "TransformerSchedule": "loop.schedules",
    "WarmupConstant": "loop.schedules",
    "WarmupCosine": "loop.schedules",
    "make_schedule": "loop.schedules",
    "TrainingSettings": "settings",
    "Checkpoints": "loop.checkpoints",
    "assign_model_arrays": "loop.checkpoints",
    "average_checkpoints": "loop.checkpoints",
    "make_strategy": "workers.strategy",
    "resolve_jit": "workers.strategy",
    "resolve_strategy": "workers.strategy",
    "TrainingStep": "loop.step",
    "make_optimizer": "loop.optimizer",
    "TrainingInterrupted": "loop.ending",
    "ValidationSet": "loop.validation_set",
    "Trainer": "loop.trainer",
    "TrainingResult": "loop.run_weights",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
