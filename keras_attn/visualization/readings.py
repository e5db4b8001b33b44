"""Inputs of a task's model for a text, with the tokens at their positions."""

import dataclasses
import unicodedata
from typing import Any

import tensorflow as tf

from keras_attn.tasks import GeneratingTask, Task, read_inputs
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.token_view import EMPTY, TokenView
from keras_attn.validation import UserError, asserted, require

_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}
_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Co", "Cn"}


@dataclasses.dataclass(frozen=True)
class Reading:
    """A text as inputs of a model.

    Attributes:
        text: The text.
        inputs: Inputs of the model, a batch of 1.
        source: The tokens that an encoder reads.
        target: The tokens that a decoder reads.
        written: For each token of the target the token that is generated after it.
        target_text: The text of the target, if any.
    """

    text: str
    inputs: dict[str, Any]
    source: list[str] = dataclasses.field(default_factory=list)
    target: list[str] = dataclasses.field(default_factory=list)
    written: list[str] = dataclasses.field(default_factory=list)
    target_text: str | None = None


def read_text(task: Task, text: str, target: str | None = None) -> Reading:
    """Makes the inputs of a task's model.

    Args:
        task: The task.
        text: A text, or the name of a PNG file.
        target: The output text that the decoder reads; the task's prediction by default. For a
            language model the continuation, empty by default.

    Returns:
        The reading.

    Raises:
        UserError: A text is too long, the image does not exist, or the task has no target.
    """
    check_texts("text", [text] if target is None else [text, target])
    try:
        read, target = _read(task, text, target)
    except tf.errors.InvalidArgumentError as error:
        raise UserError(asserted(str(error.message))) from None
    tokens = {name: _readable(getattr(read, name)) for name in ("source", "target", "written")}
    return Reading(text, read.inputs, target_text=target, **tokens)


def _read(task: Task, text: str, target: str | None) -> tuple[TokenView, str | None]:
    """The tokens that the task reads, and the text of the target, if any."""
    if not isinstance(task, GeneratingTask):
        require(target is None, "`target` is for tasks that generate text.", task=task.kind)
        return task.read_tokens(tf.constant(read_inputs(task.kind, [text]))), None
    if target is None and not task.continues:
        return task.read_answer(text)
    return task.read_tokens(tf.constant([text]), tf.constant([target or ""])), target


def _readable(tokens: tf.Tensor | None) -> list[str]:
    return [] if tokens is None else [readable(token.decode()) for token in tokens[0].numpy()]


def readable(text: str) -> str:
    """Replaces invisible characters of a text by symbols.

    Spaces become ␣, line feeds ⏎, other invisible characters their numbers, and an empty text ∅.
    """
    return "".join(map(_readable_character, text)) or EMPTY


def _readable_character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if unicodedata.category(character) in _UNSEEN:
        return f"U+{ord(character):04X}"
    return character
