"""Layers by length and width: self-attention, windowed, recurrent, convolutional.

Exponents fitted to the measured times stand beside the theory's.
"""

import argparse

from keras_attn.benchmarks import growth
from keras_attn.benchmarks.complexity import measure_complexity
from keras_attn.cli.benchmark.common import (
    add_backend,
    add_jit,
    add_lengths,
    print_lines,
    use_backend,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark complexity`."""
    add_lengths(parser)
    parser.add_argument(
        "--widths",
        type=int,
        nargs="+",
        default=[64, 128, 256],
        metavar="N",
        help="numbers of features (default: 64 128 256)",
    )
    add_jit(parser)
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints, then a table."""
    use_backend(options)
    how = {"backward": not options.forward, "jit": options.jit}
    measured = print_lines(options, measure_complexity(options.lengths, options.widths, **how))
    print(f"\n{growth.complexity_table(measured)}")
