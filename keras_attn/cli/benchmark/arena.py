"""Mechanisms by tasks for long sequences: accuracy, time and memory.

Every mechanism is trained on every task by a run of its own, with the same data, sizes and batches.
The command can be interrupted and started again: what is finished stays, and the last run goes on.
"""

import argparse
import functools
import sys
from typing import Any

from keras_attn.cli.benchmark.common import Figure, Figures
from keras_attn.cli.options import add_set_option, add_value, picture_file, setting
from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError, require, require_positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark arena`."""
    add = parser.add_argument
    add("--out", required=True, metavar="FOLDER", help="folder of all runs")
    tasks = (
        "listops (500 to 2,000 tokens), bytes (labeled texts, see --files), retrieval (labeled "
        "pairs: label, two ids and two texts with tabs between them), pathfinder, recall, "
        "induction, selective_copying or duplication; generated ones also with arguments, such as "
        "recall:pairs=16,length=256 (default: listops pathfinder)"
    )
    add("--tasks", nargs="+", default=["listops", "pathfinder"], metavar="TASK", help=tasks)
    mechanisms = (
        "mechanisms of keras-attn train --set attention=NAME (default: dense local longformer "
        "linear performer gated_linear; where tasks are causal, delta_rule in place of longformer)"
    )
    add("--mechanisms", nargs="+", metavar="NAME", help=mechanisms)
    files = "labeled texts to train on, for the task bytes or retrieval"
    add("--files", nargs="+", metavar="FILE", help=files)
    add("--test-files", nargs="+", metavar="FILE", help="labeled texts to test on")
    probes = "generated tasks that finished runs of one task are also measured on"
    add("--probes", nargs="+", default=[], metavar="TASK", help=probes)
    add("--steps", type=int, metavar="N", help="updates of each run (default: 1000)")
    add(
        "--minutes",
        type=float,
        metavar="M",
        help="minutes of each run, in place of updates, or "
        "beside --steps: what comes first ends it",
    )
    pretrain = (
        "learn masked tokens of the task's inputs for N updates first, and start the task from "
        "these weights (listops, bytes and pathfinder)"
    )
    add("--pretrain-steps", type=int, metavar="N", help=pretrain)
    add_value(parser, "--seed", 0, "seed of the weights and of the order of the data")
    add_set_option(parser, "a setting of all runs, such as training.batch_tokens=8192")
    plot = "draw the figures, with the extra viz"
    add("--plot", type=picture_file, metavar="FILE.png", help=plot)


def measure(options: argparse.Namespace) -> Figures:
    """Trains and measures."""
    with quiet_start():
        from keras_attn.benchmarks.arena import run_arena
        from keras_attn.benchmarks.growth import require_matplotlib
        from keras_attn.recipes import merged
        from keras_attn.training import named_sets  # noqa: F401  # TensorFlow, needed later
    if options.plot:
        require_matplotlib()
    minutes = options.minutes
    if options.steps is not None:
        require_positive(steps=options.steps)
    require(minutes is None or minutes > 0, "`minutes` must be above 0.", minutes=minutes)
    settings: dict[str, Any] = functools.reduce(merged, map(setting, options.set), {})
    return run_arena(
        options.out,
        options.tasks,
        options.mechanisms,
        {"train": options.files or [], "test": options.test_files or []},
        1_000 if options.steps is None and minutes is None else options.steps,
        minutes,
        options.seed,
        settings,
        options.probes,
        watch=lambda line: print(line, file=sys.stderr, flush=True),
        pretrain_steps=options.pretrain_steps,
    )


def conclude(measured: list[Figure], options: argparse.Namespace) -> None:
    """Prints a table, and draws a picture where one is asked for."""
    from keras_attn.benchmarks.arena.results import arena_table, draw_arena

    print(f"\n{arena_table(measured)}")
    if options.plot:
        draw_arena(measured, options.plot)
    failed = sum("error" in figure for figure in measured)
    if failed:
        raise UserError(
            f"{failed} of {len(measured)} runs failed: their logs are in {options.out}."
        )
