"""Load test of `keras-attn serve`: requests per second, latencies, overhead of REST."""

import argparse

from keras_attn.cli.benchmark.common import print_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark serve`."""
    add = parser.add_argument
    add("model", metavar="DIR", help="an exported model, whose golden examples are the requests")
    add(
        "--clients",
        type=int,
        nargs="+",
        default=[1, 8, 64],
        metavar="N",
        help="clients at the same time (default: 1 8 64)",
    )
    add(
        "--threads",
        type=int,
        nargs="+",
        default=[1, 2],
        metavar="N",
        help="batches at the same time (default: 1 2)",
    )
    add(
        "--seconds",
        type=float,
        default=5.0,
        metavar="S",
        help="duration of each measurement (default: 5)",
    )
    add(
        "--direct-calls",
        type=int,
        default=200,
        metavar="N",
        help="calls to measure the overhead of REST; 0 for none (default: 200)",
    )


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    from keras_attn.benchmarks.serve import measure_serving

    figures = measure_serving(
        options.model, options.clients, options.threads, options.seconds, options.direct_calls
    )
    print_lines(options, figures)
