"""Time and memory of attention mechanisms by length, and their growth."""

import argparse
import sys

from keras_attn.benchmarks import growth
from keras_attn.benchmarks.attention import measure_attention
from keras_attn.benchmarks.mechanisms import MECHANISMS
from keras_attn.cli.benchmark.common import (
    add_backend,
    add_jit,
    add_lengths,
    add_precision,
    print_lines,
    use_backend,
)
from keras_attn.cli.output_file import picture_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark attention`."""
    add = parser.add_argument
    add(
        "--mechanisms",
        nargs="+",
        metavar="NAME",
        help=f"which to measure (default: all): {', '.join(MECHANISMS)}",
    )
    add_lengths(parser, [512 << doubled for doubled in range(7)])
    add("--causal", action="store_true", help="use causal masking where possible")
    add("--rounds", type=int, default=1, metavar="N", help="processes per measurement (default: 1)")
    add(
        "--plot", type=picture_file, metavar="FILE.png", help="draw the figures, with the extra viz"
    )
    add_precision(parser)
    add_jit(parser)
    add_backend(parser)


def run(options: argparse.Namespace) -> None:
    """Measures and prints, then a table, and draws a picture where one is asked for."""
    use_backend(options)
    if options.plot:
        growth.require_matplotlib()
    if options.causal and options.mechanisms is None:
        left_out = [name for name in MECHANISMS if not MECHANISMS[name].causal]
        print(
            f"Left out, because they do not support causal masking: {', '.join(left_out)}.",
            file=sys.stderr,
        )
    figures = measure_attention(
        options.lengths,
        options.mechanisms,
        options.causal,
        backward=not options.forward,
        jit=options.jit,
        precision=options.precision,
        rounds=options.rounds,
    )
    measured = print_lines(options, figures)
    print(f"\n{growth.attention_table(measured)}")
    if options.plot:
        growth.draw_attention(measured, options.plot)
