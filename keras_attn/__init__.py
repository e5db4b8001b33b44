"""Attention layers and models for Keras 3: train, export and serve them."""

import importlib
import os
from typing import Any

from keras_attn.registration import register_with_keras

__version__ = "0.1.0"

_SUBPACKAGES = (
    "convert",
    "data",
    "evaluation",
    "export",
    "generation",
    "layers",
    "models",
    "ops",
    "serving",
    "tasks",
    "tokenizers",
    "training",
    "tuning",
    "visualization",
)

__all__ = ["__version__", "load", *_SUBPACKAGES]


def load(path: str | os.PathLike) -> Any:
    """Loads a run, a task folder or an export for prediction.

    Args:
        path: A run folder of `keras-attn train` or `Task.fit`, a folder of `Task.save`, a folder of
            `keras-attn export` (with or without the version), or a model of `saved_models/`.

    Returns:
        The task, or an exported one with the same methods for prediction.

    Raises:
        UserError: The path contains none of them, or a damaged one.

    Examples:
        >>> import keras_attn
        >>> task = keras_attn.load("saved_models/g2p_en")
        >>> task.predict(["transformer", "attention"])
        ['T R AE N S F AO R M ER', 'AH T EH N SH AH N']
    """
    return importlib.import_module(f"{__name__}.tasks").open_task(path)


def __getattr__(name: str):
    # Keras and TensorFlow take seconds to import: subpackages are imported when first used.
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_with_keras()
