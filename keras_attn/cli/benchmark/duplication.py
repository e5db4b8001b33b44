"""The duplication task of the Reformer's paper, by rounds of hashing.

A layer is trained with full attention or with hashing, and evaluated with more and fewer rounds.
"""

import argparse

from keras_attn.cli.benchmark.common import add_backend, print_lines, use_backend
from keras_attn.cli.terminal import progress, quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark duplication`."""
    add = parser.add_argument
    add(
        "--trained",
        nargs="+",
        default=["full", "lsh-4"],
        metavar="KIND",
        help="attention to train with: full, lsh-1, lsh-2, lsh-4 (default: full lsh-4)",
    )
    add(
        "--length",
        type=int,
        default=256,
        metavar="N",
        help="tokens of a sequence, even (default: 256)",
    )
    add(
        "--steps",
        type=int,
        default=2_000,
        metavar="N",
        help="updates, a multiple of 100 (default: 2000)",
    )
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of weights, data and hashes (default: 0)",
    )
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Trains, evaluates and prints, then a table."""
    use_backend(options)
    with quiet_start():
        from keras_attn.benchmarks import duplication
    with progress(options.steps * len(options.trained), "training") as advance:
        figures = duplication.measure_duplication(
            options.trained,
            options.length,
            options.steps,
            seed=options.seed,
            watch=lambda *_: advance(duplication.STEPS_AT_ONCE),
        )
        measured = print_lines(options, figures)
    print(f"\n{duplication.duplication_table(measured)}")
