"""Greedy generation by a preset's model: random weights, forced length."""

import argparse

from keras_attn.cli.benchmark.common import Figures, add_shared
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark generate`."""
    preset = "one of `keras-attn presets`"
    parser.add_argument("--preset", required=True, metavar="NAME", help=preset)
    add_value(parser, "--batches", [1, 16], "batch sizes")
    add_value(parser, "--source", 32, "tokens of the prompts")
    add_value(parser, "--new-tokens", 64, "tokens generated")
    add_value(parser, "--vocabulary", 32_000, "its size")
    add_value(parser, "--runs", 3, "runs timed")
    add_shared(parser, "--jit")


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    with quiet_start():
        from keras_attn.benchmarks.generate import benchmark_generation
    return benchmark_generation(
        options.preset,
        options.batches,
        options.source,
        options.new_tokens,
        options.vocabulary,
        options.jit,
        options.runs,
    )
