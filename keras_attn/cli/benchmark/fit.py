"""Plain `model.fit` of a preset on random ids, compared with the peak speed of matrix products."""

import argparse

from keras_attn.cli.benchmark.common import Figures, add_backend, add_shared
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark fit`."""
    preset = "sizes of an encoder-decoder Transformer"
    add_value(parser, "--preset", "transformer_base", preset, "NAME")
    add_value(parser, "--batch", 64, "sequences of a batch")
    add_value(parser, "--length", 128, "tokens of each side")
    add_value(parser, "--steps", 9, "steps timed")
    add_shared(parser, "--precision", "--jit")
    add_backend(parser)


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    sizes = (options.preset, options.batch, options.length)
    with quiet_start():  # Keras on JAX imports TensorFlow during `fit` if it is installed
        from keras_attn.benchmarks.fit import benchmark_fit

        return [benchmark_fit(*sizes, options.precision, options.jit, options.steps)]
