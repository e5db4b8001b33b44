"""The result of a conversion."""

from typing import NamedTuple

from keras_attn.tasks import Task


class Conversion(NamedTuple):
    """A converted checkpoint.

    Attributes:
        task: The task, with the weights and tokenizers of the checkpoint.
        notes: Notes for the user, such as unused parts; one line each.

    Examples:
        >>> conversion = convert_checkpoint("gpt2")  # a folder of `save_pretrained`
        >>> type(conversion.task).__name__, conversion.notes
        ('CausalLMTask', ())
    """

    task: Task
    notes: tuple[str, ...] = ()
