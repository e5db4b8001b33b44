"""Export of tasks as SavedModels for TensorFlow Serving, and checks in TensorFlow's C++ runtime.

Everything except the export itself only needs NumPy and protobuf, so that a process can check and
run a SavedModel without loading TensorFlow's Python, Keras or JAX. The export is imported when it
is first used.
"""

import importlib
from collections.abc import Callable
from pathlib import Path

from keras_attn.export.lint import lint_saved_model
from keras_attn.export.runtime import CppSavedModel, SavedModelError, served_ops
from keras_attn.export.verify import Report, verify

__all__ = [
    "CppSavedModel",
    "Report",
    "SavedModelError",
    "export_saved_model",
    "lint_saved_model",
    "served_ops",
    "verify",
]


def __getattr__(name: str) -> Callable[..., Path]:
    if name == "export_saved_model":
        return importlib.import_module(f"{__name__}.saved_model").export_saved_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
