"""Attention layers and models for Keras 3: train, export and serve them."""

import importlib

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
    "visualization",
)

__all__ = ["__version__", *_SUBPACKAGES]


def __getattr__(name: str):
    # Keras and TensorFlow take seconds to import: a subpackage is loaded when it is first used.
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_with_keras()
