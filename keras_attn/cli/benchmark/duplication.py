"""The duplication task of the Reformer's paper, by rounds of hashing.

A layer is trained with full attention or with hashing, and evaluated with more and fewer rounds.
"""

import argparse

from keras_attn.cli.benchmark.common import Figure, Figures, add_backend
from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start
from keras_attn.progress import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark duplication`."""
    trained = "attention to train with: full, lsh-1, lsh-2, lsh-4"
    add_value(parser, "--trained", ["full", "lsh-4"], trained, "KIND")
    add_value(parser, "--length", 256, "tokens of a sequence, even")
    add_value(parser, "--steps", 2_000, "updates, a multiple of 100")
    add_value(parser, "--seed", 0, "seed of weights, data and hashes")
    add_backend(parser)


def measure(options: argparse.Namespace) -> Figures:
    """Trains and evaluates."""
    with quiet_start():
        from keras_attn.benchmarks import duplication
    with progress(options.steps * len(options.trained), "training") as advance:
        yield from duplication.measure_duplication(
            options.trained,
            options.length,
            options.steps,
            seed=options.seed,
            watch=lambda *_: advance(duplication.STEPS_AT_ONCE),
        )


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table."""
    from keras_attn.benchmarks.duplication import duplication_table

    print(f"\n{duplication_table(measured)}")
