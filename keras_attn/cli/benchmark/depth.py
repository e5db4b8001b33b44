"""Memory of training by the number of blocks: usual, recomputed and reversible.

Memory is measured as the difference to a sequence of a sixteenth of the length, which excludes the
program and the gradients of the weights.
"""

import argparse

from keras_attn.benchmarks.depth import depth_table, measure_depth
from keras_attn.cli.benchmark.common import add_backend, print_lines, use_backend


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark depth`."""
    parser.add_argument(
        "--blocks",
        type=int,
        nargs="+",
        default=[1, 4, 12],
        metavar="N",
        help="numbers of blocks (default: 1 4 12)",
    )
    parser.add_argument(
        "--length", type=int, default=4096, metavar="N", help="positions (default: 4096)"
    )
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints, then a table."""
    use_backend(options)
    measured = print_lines(options, measure_depth(options.blocks, options.length))
    print(f"\n{depth_table(measured)}")
