"""The `token_ids` signature of an exported model: random weights, forced length."""

import argparse

from keras_attn.cli.benchmark.common import Figures, add_shared
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark decode`."""
    add = parser.add_argument
    add("--batches", type=int, nargs="+", metavar="N", help="batch sizes (default: 1 16 64)")
    add("--beams", type=int, nargs="+", metavar="N", help="beam widths (default: 1 4)")
    add_value(parser, "--runs", 3, "runs timed")
    add_shared(parser, "--jit")
    add_value(parser, "--compute", "float32", "float32, bfloat16 or int8", "DTYPE")


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    with quiet_start():
        from keras_attn.benchmarks.decode import benchmark_decoding
    return benchmark_decoding(
        options.batches, options.beams, options.jit, options.runs, options.compute
    )
