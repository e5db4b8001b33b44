"""Greedy generation by a preset's model: random weights, forced length."""

import argparse

from keras_attn.cli.benchmark.common import add_jit, print_lines
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark generate`."""
    add = parser.add_argument
    add("--preset", required=True, metavar="NAME", help="one of `keras-attn presets`")
    add("--batches", type=int, nargs="+", default=[1, 16], metavar="N", help="(default: 1 16)")
    add("--source", type=int, default=32, metavar="N", help="tokens of the prompts (default: 32)")
    add("--new-tokens", type=int, default=64, metavar="N", help="tokens generated (default: 64)")
    add("--vocabulary", type=int, default=32_000, metavar="N", help="its size (default: 32000)")
    add("--runs", type=int, default=3, metavar="N", help="runs timed (default: 3)")
    add_jit(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    with quiet_start():
        from keras_attn.benchmarks.generate import benchmark_generation
    figures = benchmark_generation(
        options.preset,
        options.batches,
        options.source,
        options.new_tokens,
        options.vocabulary,
        options.jit,
        options.runs,
    )
    print_lines(options, figures)
