"""What a task's model is called with for a text, and which token stands where."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_attn.tasks import GeneratingTask, Task, read_inputs
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.token_view import TokenView
from keras_attn.validation import UserError, asserted, require
from keras_attn.visualization.tokens import readable


@dataclasses.dataclass(frozen=True)
class Reading:
    """One text as a model reads it.

    Attributes:
        text: What is read.
        inputs: What the model is called with, a batch of 1.
        source: The tokens of what an encoder reads.
        target: The tokens of what a decoder reads.
        written: For each token of the target the one that is written after it.
        target_text: What the target says, where there is one.
    """

    text: str
    inputs: dict[str, Any]
    source: list[str] = dataclasses.field(default_factory=list)
    target: list[str] = dataclasses.field(default_factory=list)
    written: list[str] = dataclasses.field(default_factory=list)
    target_text: str | None = None


def read_text(task: Task, text: str, target: str | None = None) -> Reading:
    """Makes what a task's model is called with.

    Args:
        task: The task.
        text: What the task reads: a text, or the name of a PNG file.
        target: The text that goes out, which the decoder is given; what the task predicts by
            default. For a language model the continuation, by default none.

    Returns:
        The reading.

    Raises:
        UserError: A text is too long, there is no such image, or the task has no target.
    """
    check_texts("text", [text] if target is None else [text, target])
    try:
        read, target = _read(task, text, target)
    except tf.errors.InvalidArgumentError as error:
        raise UserError(asserted(str(error.message))) from None
    tokens = {name: _readable(getattr(read, name)) for name in ("source", "target", "written")}
    return Reading(text, read.inputs, target_text=target, **tokens)


def _read(task: Task, text: str, target: str | None) -> tuple[TokenView, str | None]:
    """The tokens that the task reads, and what the target says where there is one."""
    if not isinstance(task, GeneratingTask):
        require(target is None, "Only what generates texts has a target.", task=task.kind)
        return task.read_tokens(tf.constant(read_inputs(task.kind, [text]))), None
    if target is None and not task.continues:
        return task.read_answer(text)
    return task.read_tokens(tf.constant([text]), tf.constant([target or ""])), target


def _readable(tokens: tf.Tensor | None) -> list[str]:
    return [] if tokens is None else [readable(token.decode()) for token in tokens[0].numpy()]
