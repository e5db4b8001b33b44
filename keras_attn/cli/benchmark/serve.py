"""Load test of `keras-attn serve`: requests per second, latencies, overhead of REST."""

import argparse

from keras_attn.cli.benchmark.common import Figures
from keras_attn.cli.options import add_value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark serve`."""
    model = "an exported model, whose golden examples are the requests"
    parser.add_argument("model", metavar="DIR", help=model)
    add_value(parser, "--clients", [1, 8, 64], "clients at the same time")
    add_value(parser, "--threads", [1, 2], "batches at the same time")
    add_value(parser, "--seconds", 5.0, "duration of each measurement", "S")
    calls = "calls to measure the overhead of REST; 0 for none"
    add_value(parser, "--direct-calls", 200, calls)


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    from keras_attn.benchmarks.serve import measure_serving

    return measure_serving(
        options.model, options.clients, options.threads, options.seconds, options.direct_calls
    )
