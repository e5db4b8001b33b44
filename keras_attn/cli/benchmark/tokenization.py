"""Time that tokenization in the graph adds to an exported model's answer."""

import argparse

from keras_attn.cli.benchmark.common import Figures
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark tokenization`."""
    model = "an exported model, such as saved_models/g2p_en"
    parser.add_argument("model", metavar="MODEL", help=model)
    add_value(parser, "--batch", 16, "texts at a time")
    add_value(parser, "--runs", 30, "runs timed of each")


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    with quiet_start():
        from keras_attn.benchmarks.tokenization import benchmark_tokenization

        return [benchmark_tokenization(options.model, options.batch, options.runs)]
