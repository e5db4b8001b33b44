"""What comes out of a conversion."""

from typing import NamedTuple

from keras_attn.tasks import Task


class Conversion(NamedTuple):
    """A converted checkpoint.

    Attributes:
        task: The task.
        notes: What a user has to know, such as parts that were left out; one line each.
    """

    task: Task
    notes: tuple[str, ...] = ()
