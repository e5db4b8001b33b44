"""Options and output that several benchmarks share."""

import argparse
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_attn.files import write_text
from keras_attn.training.settings import PRECISIONS
from keras_attn.validation import require_one_of

BACKENDS = ("tensorflow", "jax")

Figure = dict[str, Any]
"""Measurements by name."""

Figures = Iterable[Figure]
"""Measurements, each made when it is asked for."""


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options that several benchmarks have, by their names."""
    shared: dict[str, dict[str, Any]] = {
        "--forward": {"action": "store_true", "help": "without the gradients"},
        "--jit": {"action": "store_true", "help": "compile with XLA"},
        "--precision": {
            "default": "float32",
            "choices": PRECISIONS,
            "metavar": "NAME",
            "help": f"Keras dtype policy: {', '.join(PRECISIONS)} (default: float32)",
        },
        "--backend": {
            "default": os.environ.get("KERAS_BACKEND") or BACKENDS[0],
            "choices": BACKENDS,
            "help": "Keras backend; jax needs no TensorFlow (default: KERAS_BACKEND, or "
            f"{BACKENDS[0]})",
        },
    }
    for name in names:
        parser.add_argument(name, **shared[name])


def use_backend(options: argparse.Namespace) -> None:
    """Sets the backend for Keras, before its import, and for child processes.

    Raises:
        UserError: KERAS_BACKEND is another backend and no option replaces it.
    """
    require_one_of("KERAS_BACKEND", options.backend, BACKENDS)
    os.environ["KERAS_BACKEND"] = options.backend


def print_lines(figures: Figures, file: Path | None) -> list[Figure]:
    """Prints each measurement at once, and writes all to the file, if any.

    Returns:
        All measurements.
    """
    measured = []
    for figure in figures:
        measured.append(figure)
        print(json.dumps(figure), flush=True)
        if file:
            write_text(file, "".join(json.dumps(figure) + "\n" for figure in measured))
    return measured
