"""Plain `model.fit` of a preset on random ids, compared with the peak speed of matrix products."""

import argparse

from keras_attn.cli.benchmark.common import (
    add_backend,
    add_jit,
    add_precision,
    add_steps,
    print_lines,
    use_backend,
)
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark fit`."""
    add = parser.add_argument
    add(
        "--preset",
        default="transformer_base",
        metavar="NAME",
        help="sizes of an encoder-decoder Transformer (default: transformer_base)",
    )
    add("--batch", type=int, default=64, metavar="N", help="sequences of a batch (default: 64)")
    add("--length", type=int, default=128, metavar="N", help="tokens of each side (default: 128)")
    add_precision(parser)
    add_jit(parser)
    add_steps(parser)
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    use_backend(options)
    sizes = (options.preset, options.batch, options.length)
    with quiet_start():  # Keras on JAX imports TensorFlow during `fit` if it is installed
        from keras_attn.benchmarks.fit import benchmark_fit

        figures = benchmark_fit(*sizes, options.precision, options.jit, options.steps)
    print_lines(options, [figures])
