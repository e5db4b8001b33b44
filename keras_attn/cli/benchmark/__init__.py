"""Benchmark training, decoding or attention: a line of JSON for each measurement.

examples:
  keras-attn benchmark train --workload train-small --jit
  keras-attn benchmark train --workload train-small --profile
  keras-attn benchmark fit --preset transformer_big --precision mixed_bfloat16 --batch 128
  keras-attn benchmark decode --batches 1 64 --beams 4 --json decode.jsonl
  keras-attn benchmark generate --preset gpt2_small --vocabulary 50257 --jit
  keras-attn benchmark tokenization saved_models/g2p_en --batch 16
  keras-attn benchmark attention --mechanisms dense local lsh --lengths 2048 8192 --plot growth.png
  keras-attn benchmark arena --tasks listops bytes --files train.tsv --out runs/arena
  keras-attn benchmark beside_keras
  keras-attn benchmark complexity --lengths 1024 2048 4096 --widths 256 512 1024
  keras-attn benchmark depth --blocks 1 4 12
  keras-attn benchmark duplication --length 256 --steps 10000
  keras-attn benchmark serve saved_models/g2p_en

`keras-attn benchmark KIND --help` lists the options of each.
"""

import argparse
import importlib

from keras_attn.cli.benchmark.common import print_lines, use_backend
from keras_attn.cli.options import output_file

# Each is a module of this package.
KINDS = (
    *("train", "fit", "decode", "generate", "tokenization"),
    *("attention", "arena", "beside_keras", "complexity", "depth", "duplication", "serve"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the kinds of benchmarks, each with options of its own."""
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    for name in KINDS:
        module = importlib.import_module(f"{__name__}.{name}")
        summary = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        kind = kinds.add_parser(
            name,
            help=summary[0].lower() + summary[1:],
            description=module.__doc__,
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        module.add_arguments(kind)
        lines = "write the lines to a file too"
        kind.add_argument("--json", type=output_file, metavar="FILE", help=lines)
        kind.set_defaults(kind=module, parser=kind)


def run(options: argparse.Namespace) -> None:
    """Measures and prints, then what one of the kinds concludes from all measurements."""
    if "backend" in options:
        use_backend(options)
    measured = print_lines(options.kind.measure(options), options.json)
    if hasattr(options.kind, "conclude"):
        options.kind.conclude(measured, options)
