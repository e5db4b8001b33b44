"""Options and output that several benchmarks share."""

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_attn.files import write_text
from keras_attn.training.settings import PRECISIONS
from keras_attn.validation import require_one_of

BACKENDS = ("tensorflow", "jax")
BACKENDS_OF_LAYERS = (*BACKENDS, "torch")

Figure = dict[str, Any]
"""Measurements by name."""

Figures = Iterable[Figure]
"""Measurements, each made when it is asked for."""


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options that several benchmarks have, by their names."""
    shared: dict[str, dict[str, Any]] = {
        "--forward": {"action": "store_true", "help": "without the gradients"},
        "--jit": {"action": "store_true", "help": "compile with XLA, or PyTorch's compiler"},
        "--precision": {
            "default": "float32",
            "choices": PRECISIONS,
            "metavar": "NAME",
            "help": f"Keras dtype policy: {', '.join(PRECISIONS)} (default: float32)",
        },
    }
    for name in names:
        parser.add_argument(name, **shared[name])


def add_backend(parser: argparse.ArgumentParser, backends: Sequence[str] = BACKENDS) -> None:
    """Adds `--backend`, with the backends that a benchmark measures."""
    parser.add_argument(
        "--backend",
        default=os.environ.get("KERAS_BACKEND") or backends[0],
        choices=backends,
        help=f"Keras backend; others than {backends[0]} need no TensorFlow (default: "
        f"KERAS_BACKEND, or {backends[0]})",
    )
    parser.set_defaults(backends=backends)


def use_backend(options: argparse.Namespace) -> None:
    """Sets the backend for Keras, before its import, and for child processes.

    Raises:
        UserError: KERAS_BACKEND is another backend and no option replaces it.
    """
    require_one_of("KERAS_BACKEND", options.backend, options.backends)
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
