"""Losses, metrics, learning rates and the trainer.

Names are imported when first used: losses, metrics, schedules need only Keras, the rest TensorFlow.
"""

import importlib
from typing import Any

_HOME = {
    "TokenCrossEntropy": "losses",
    "TokenAccuracy": "metrics",
    "Perplexity": "metrics",
    "InverseSquareRoot": "schedules",
    "TransformerSchedule": "schedules",
    "WarmupConstant": "schedules",
    "WarmupCosine": "schedules",
    "make_schedule": "schedules",
    "TrainingSettings": "settings",
    "Checkpoints": "checkpoints",
    "assign_model_arrays": "checkpoints",
    "average_checkpoints": "checkpoints",
    "make_strategy": "strategy",
    "resolve_jit": "strategy",
    "resolve_strategy": "strategy",
    "TrainingStep": "step",
    "make_optimizer": "optimizer",
    "TrainingInterrupted": "interruption",
    "ValidationSet": "validation_set",
    "Trainer": "trainer",
    "TrainingResult": "trainer",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
