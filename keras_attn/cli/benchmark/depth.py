"""Memory of training by the number of blocks: usual, recomputed and reversible.

Memory is measured as the difference to a sequence of a sixteenth of the length, which excludes the
program and the gradients of the weights.
"""

import argparse

from keras_attn.benchmarks.depth import depth_table, measure_depth
from keras_attn.cli.benchmark.common import Figure, Figures, add_backend
from keras_attn.cli.options import add_value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark depth`."""
    add_value(parser, "--blocks", [1, 4, 12], "numbers of blocks")
    add_value(parser, "--length", 4096, "positions")
    add_backend(parser)


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    return measure_depth(options.blocks, options.length)


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table."""
    print(f"\n{depth_table(measured)}")
