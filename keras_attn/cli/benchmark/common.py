"""Options and output that several benchmarks share."""

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from keras_attn.files import write_text
from keras_attn.training.precisions import PRECISIONS
from keras_attn.validation import require_one_of

BACKENDS = ("tensorflow", "jax")


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Adds the backend to measure."""
    parser.add_argument(
        "--backend",
        default=os.environ.get("KERAS_BACKEND") or BACKENDS[0],
        choices=BACKENDS,
        help=f"Keras backend; jax needs no TensorFlow (default: KERAS_BACKEND, or {BACKENDS[0]})",
    )


def use_backend(options: argparse.Namespace) -> None:
    """Sets the backend for Keras, before its import, and for child processes.

    Raises:
        UserError: KERAS_BACKEND is another backend and no option replaces it.
    """
    require_one_of("KERAS_BACKEND", options.backend, BACKENDS)
    os.environ["KERAS_BACKEND"] = options.backend


def add_jit(parser: argparse.ArgumentParser) -> None:
    """Adds the choice of XLA."""
    parser.add_argument("--jit", action="store_true", help="compile with XLA")


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Adds the precision."""
    parser.add_argument(
        "--precision",
        default="float32",
        choices=PRECISIONS,
        metavar="NAME",
        help=f"Keras dtype policy: {', '.join(PRECISIONS)} (default: float32)",
    )


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Adds the number of steps to time."""
    parser.add_argument(
        "--steps", type=int, default=9, metavar="N", help="steps timed (default: 9)"
    )


def add_lengths(parser: argparse.ArgumentParser, lengths: Sequence[int]) -> None:
    """Adds the lengths to measure, and the choice of gradients."""
    parser.add_argument(
        "--lengths",
        type=int,
        nargs="+",
        default=list(lengths),
        metavar="N",
        help=f"numbers of positions (default: {lengths[0]} to {lengths[-1]})",
    )
    parser.add_argument("--forward", action="store_true", help="without the gradients")


def print_lines(options: argparse.Namespace, figures: Iterable[dict[str, Any]]) -> list[dict]:
    """Prints each measurement at once, and writes all to the file, if any.

    Returns:
        All measurements.
    """
    measured = []
    for figure in figures:
        measured.append(figure)
        print(json.dumps(figure), flush=True)
        if options.json:
            lines = "".join(json.dumps(figure) + "\n" for figure in measured)
            write_text(options.json, lines)
    return measured
