"""What several benchmarks have in common: options, and lines of JSON."""

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
        help="what Keras runs on; jax needs no TensorFlow (default: what KERAS_BACKEND names, or "
        f"{BACKENDS[0]})",
    )


def use_backend(options: argparse.Namespace) -> None:
    """Lets Keras, which is not imported yet, and processes started from here run on it.

    Raises:
        UserError: KERAS_BACKEND, where no option overrules it, names another one.
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
    """Adds the lengths to measure, and whether to with gradients."""
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
    """Prints each measurement as soon as it is there, and keeps them in the file, if there is one.

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
