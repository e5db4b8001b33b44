"""Speed of MultiHeadAttention beside the layer of Keras that it replaces, called in turn."""

import argparse

from keras_attn.cli.benchmark.common import (
    BACKENDS_OF_LAYERS,
    Figure,
    Figures,
    add_backend,
    add_shared,
)
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark beside_keras`."""
    parser.add_argument(
        "--shape",
        action="append",
        nargs=4,
        type=int,
        metavar=("ROWS", "LENGTH", "FEATURES", "HEADS"),
        help="shape of the inputs, and heads; may be repeated (default: four usual ones)",
    )
    add_value(parser, "--rounds", 7, "timed calls of each layer")
    add_shared(parser, "--jit")
    add_backend(parser, BACKENDS_OF_LAYERS)


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    with quiet_start():
        from keras_attn.benchmarks.beside_keras import SHAPES, measure_beside_keras
    return measure_beside_keras(options.shape or SHAPES, options.rounds, options.jit)


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table."""
    from keras_attn.benchmarks.beside_keras import beside_keras_table

    print(f"\n{beside_keras_table(measured)}")
