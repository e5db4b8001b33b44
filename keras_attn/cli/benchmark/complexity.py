"""Layers by length and width: self-attention, windowed, recurrent, convolutional.

Fitted exponents of the measured times are shown beside those of the theory: for the length at the
first width, for the width at the first length.
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
    add_lengths(parser, [1024, 2048, 4096, 8192])
    parser.add_argument(
        "--widths",
        type=int,
        nargs="+",
        default=[256, 512, 1024],
        metavar="N",
        help="numbers of features (default: 256 512 1024)",
    )
    add_jit(parser)
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints, then a table."""
    use_backend(options)
    how = {"backward": not options.forward, "jit": options.jit}
    measured = print_lines(options, measure_complexity(options.lengths, options.widths, **how))
    print(f"\n{growth.complexity_table(measured)}")
