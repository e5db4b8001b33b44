"""Options of decoding, --beams and --set, for all commands that generate text."""

import argparse
from typing import TYPE_CHECKING, Any, TypeVar

from keras_attn.cli.options import add_old_option, add_set_option, setting
from keras_attn.validation import UserError

if TYPE_CHECKING:
    from keras_attn.tasks import Task
    from keras_attn.tasks.exported.base import Exported

AnyTask = TypeVar("AnyTask", bound="Task | Exported")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    beams = "width of the beam search, 1 for greedy search (default: the model's)"
    parser.add_argument("--beams", type=int, metavar="N", help=beams)
    add_old_option(parser, "--beam", "--beams", type=int)
    add_set_option(parser, "set a value of decoding, such as decoding.no_repeat_ngram=3")


def decoding_as_told(task: AnyTask, assignments: list[str]) -> AnyTask:
    """Returns a task with the decoding settings of `--set`.

    Raises:
        UserError: A setting is not of decoding, or the task does not generate text or is exported.
    """
    from keras_attn.tasks import GeneratingTask

    changes: dict[str, Any] = {}
    for assignment in assignments:
        ((section, values),) = setting(assignment).items()
        if section != "decoding" or not isinstance(values, dict):
            raise UserError(
                f"--set takes decoding.NAME=VALUE, such as decoding.min_length=5. "
                f"Received: {assignment}"
            )
        changes |= values
    if not changes:
        return task
    if not isinstance(task, GeneratingTask):
        raise UserError(
            "--set decoding.… needs the folder of a task that generates text; the decoding of an "
            f"exported model is fixed. Received: {type(task).__name__}."
        )
    return task.with_decoding(**changes)
