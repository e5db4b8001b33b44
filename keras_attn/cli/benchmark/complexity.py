"""Layers by length and width: self-attention, windowed, recurrent, convolutional.

Fitted exponents of the measured times are shown beside those of the theory: for the length at the
first width, for the width at the first length.
"""

import argparse

from keras_attn.benchmarks import growth
from keras_attn.benchmarks.complexity import measure_complexity
from keras_attn.cli.benchmark.common import (
    BACKENDS_OF_LAYERS,
    Figure,
    Figures,
    add_backend,
    add_shared,
)
from keras_attn.cli.options import add_value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark complexity`."""
    lengths = [1024, 2048, 4096, 8192]
    add_value(parser, "--lengths", lengths, "numbers of positions (default: 1024 to 8192)")
    add_value(parser, "--widths", [256, 512, 1024], "numbers of features")
    add_shared(parser, "--forward", "--jit")
    add_backend(parser, BACKENDS_OF_LAYERS)


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    how = {"backward": not options.forward, "jit": options.jit}
    return measure_complexity(options.lengths, options.widths, **how)


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table."""
    print(f"\n{growth.complexity_table(measured)}")
