"""Average the last checkpoints of a run into a new task.

A run keeps the checkpoints of its last validations; training.keep_checkpoints or
training.average_last set their number.

examples:
  keras-attn average runs/en-de --last 5
  keras-attn evaluate runs/en-de/average-5 --data test.en test.de
"""

import argparse
from pathlib import Path

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError, require, require_positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `average`."""
    add = parser.add_argument
    add("run_folder", metavar="RUN", help="the run")
    add("--last", type=int, required=True, metavar="N", help="number of checkpoints to average")
    add("--out", metavar="TASK", help="the task folder to write (default: RUN/average-N)")


def run(options: argparse.Namespace) -> None:
    """Averages, and prints where the task was written."""
    require_positive(last=options.last)
    folder = Path(options.run_folder)
    if not (folder / "checkpoints").is_dir():
        raise UserError(f"{folder} is not a run: it contains no checkpoints.")
    with quiet_start():
        from keras_attn.tasks import Task, task_folder
        from keras_attn.training import Checkpoints, assign_model_arrays, average_checkpoints

    found = Checkpoints(folder / "checkpoints").milestones()
    require(
        options.last <= len(found),
        "`--last` must not exceed the number of checkpoints of the run.",
        last=options.last,
        kept=len(found),
    )
    task = Task.load(task_folder(folder))
    assign_model_arrays(task.backbone, average_checkpoints(found[-options.last :]))
    out = Path(options.out) if options.out else folder / f"average-{options.last}"
    task.save(out)
    print(out)
