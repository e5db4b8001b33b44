"""Time and memory of attention mechanisms by length, and their growth."""

import argparse
import sys

from keras_attn.benchmarks import growth
from keras_attn.benchmarks.attention import measure_attention
from keras_attn.benchmarks.mechanisms import MECHANISMS
from keras_attn.cli.benchmark.common import (
    BACKENDS_OF_LAYERS,
    Figure,
    Figures,
    add_backend,
    add_shared,
)
from keras_attn.cli.options import add_value, picture_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark attention`."""
    add = parser.add_argument
    mechanisms = f"which to measure (default: all): {', '.join(MECHANISMS)}"
    add("--mechanisms", nargs="+", metavar="NAME", help=mechanisms)
    lengths = [512 << doubled for doubled in range(7)]
    add_value(parser, "--lengths", lengths, "numbers of positions (default: 512 to 32768)")
    add("--causal", action="store_true", help="use causal masking where possible")
    add_value(parser, "--rounds", 1, "processes per measurement")
    plot = "draw the figures, with the extra viz"
    add("--plot", type=picture_file, metavar="FILE.png", help=plot)
    add_shared(parser, "--forward", "--precision", "--jit")
    add_backend(parser, BACKENDS_OF_LAYERS)


def measure(options: argparse.Namespace) -> Figures:
    """Measures, and says which mechanisms are left out."""
    if options.plot:
        growth.require_matplotlib()
    if options.causal and options.mechanisms is None:
        left_out = [name for name in MECHANISMS if not MECHANISMS[name].causal]
        print(
            f"Left out, because they do not support causal masking: {', '.join(left_out)}.",
            file=sys.stderr,
        )
    return measure_attention(
        options.lengths,
        options.mechanisms,
        options.causal,
        backward=not options.forward,
        jit=options.jit,
        precision=options.precision,
        rounds=options.rounds,
    )


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table, and draws a picture where one is asked for."""
    print(f"\n{growth.attention_table(measured)}")
    if options.plot:
        growth.draw_attention(measured, options.plot)
