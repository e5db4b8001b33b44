"""The result of a conversion."""

from typing import NamedTuple

from keras_attn.tasks import Task


class Conversion(NamedTuple):
    """A converted checkpoint.

    Attributes:
        task: The task.
        notes: Notes for the user, such as unused parts; one line each.
    """

    task: Task
    notes: tuple[str, ...] = ()
