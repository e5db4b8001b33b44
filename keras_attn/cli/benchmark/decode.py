"""The `token_ids` signature of an exported model: random weights, forced length."""

import argparse

from keras_attn.cli.benchmark.common import add_jit, print_lines
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark decode`."""
    add = parser.add_argument
    add("--batches", type=int, nargs="+", metavar="N", help="batch sizes (default: 1 16 64)")
    add("--beams", type=int, nargs="+", metavar="N", help="beam widths (default: 1 4)")
    add("--runs", type=int, default=3, metavar="N", help="runs timed (default: 3)")
    add_jit(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    with quiet_start():
        from keras_attn.benchmarks.decode import benchmark_decoding
    print_lines(
        options, benchmark_decoding(options.batches, options.beams, options.jit, options.runs)
    )
