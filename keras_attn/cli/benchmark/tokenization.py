"""Time that tokenization in the graph adds to an exported model's answer."""

import argparse

from keras_attn.cli.benchmark.common import print_lines
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark tokenization`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="an exported model, such as saved_models/g2p_en")
    add("--batch", type=int, default=16, metavar="N", help="texts at a time (default: 16)")
    add("--runs", type=int, default=30, metavar="N", help="runs timed of each (default: 30)")


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    with quiet_start():
        from keras_attn.benchmarks.tokenization import benchmark_tokenization

        figures = benchmark_tokenization(options.model, options.batch, options.runs)
    print_lines(options, [figures])
