"""What a task's model is called with for a text, and which token stands where."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.data import read_images
from keras_attn.tasks import (
    CausalLMTask,
    ClassificationTask,
    EmbeddingTask,
    ImageClassificationTask,
    MaskedLMTask,
    Seq2SeqTask,
    Task,
    TokenClassificationTask,
)
from keras_attn.tasks.texts import check_texts
from keras_attn.validation import UserError, require
from keras_attn.visualization.tokens import readable_tokens


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
    for kind, reader in _READERS.items():
        if isinstance(task, kind):
            try:
                return reader(task, text, target)
            except tf.errors.InvalidArgumentError as error:
                raise UserError(_told(error)) from None
    raise UserError(f"There is nothing to be seen of a task of the kind {task.kind}.")


def _read_pair(task: Seq2SeqTask, text: str, target: str | None) -> Reading:
    source_ids, tokenizer = task.input_ids(tf.constant([text])), task.target_tokenizer
    if target is None:
        # The tokens as they were written: read again, their text may be others, and more.
        search = task.serving_functions(n_best=1)["token_ids"].function
        labels = tf.function(search, autograph=False)(source_ids=source_ids)["token_ids"]
        labels = labels[:, : tf.math.count_nonzero(labels)]
        target = tokenizer.detokenize(labels)[0].numpy().decode()
    else:
        labels = task.target_ids(tf.constant([target]))
    target_ids = task.shifted(labels)
    return Reading(
        text,
        {"source_ids": source_ids, "target_ids": target_ids},
        source=readable_tokens(task.source_tokenizer, source_ids[0].numpy()),
        target=readable_tokens(tokenizer, target_ids[0].numpy()),
        written=readable_tokens(tokenizer, labels[0].numpy()),
        target_text=target,
    )


def _read_prompt(task: CausalLMTask, text: str, target: str | None) -> Reading:
    ids = task.input_ids(tf.constant([text]))
    if target is not None:
        ids = tf.concat([ids, task.tokenizer.tokenize(tf.constant([target])).to_tensor()], axis=1)
    tokens = readable_tokens(task.tokenizer, ids[0].numpy())
    return Reading(text, {"token_ids": ids}, target=tokens, target_text=target)


def _read_tokens(task: Any, text: str, target: str | None) -> Reading:
    require(target is None, "Only what generates texts has a target.", task=task.kind)
    ids = task.input_ids(tf.constant([text]))
    tokens = readable_tokens(task.tokenizer, ids[0].numpy())
    return Reading(text, {"token_ids": ids}, source=tokens)


def _read_image(task: ImageClassificationTask, text: str, target: str | None) -> Reading:
    require(target is None, "Only what generates texts has a target.", task=task.kind)
    pixels = task.pixels(tf.constant(read_images([text])))
    return Reading(text, task.model_inputs(pixels), source=_patches(task.backbone))


def _patches(model: Any) -> list[str]:
    """Names of the positions of an image: rows and columns of its patches, from 0."""
    config = getattr(model, "encoder", model).get_config()
    if "patch_size" not in config:
        return []
    sides = (np.broadcast_to(config[name], 2) for name in ("image_size", "patch_size"))
    rows, columns = np.floor_divide(*sides)
    first = ["[class]"] if config["class_token"] else []
    return first + [f"{row},{column}" for row in range(rows) for column in range(columns)]


def _told(error: tf.errors.OpError) -> str:
    """What the assertion of a task says, and the number that it saw, without TensorFlow's words."""
    found = re.search(r"b'(The .*)'\n(\d+)", str(error.message))
    return " ".join(found.groups()) if found else str(error.message).strip().splitlines()[0]


_READERS: dict[type[Task], Callable[[Any, str, str | None], Reading]] = {
    Seq2SeqTask: _read_pair,
    CausalLMTask: _read_prompt,
    ImageClassificationTask: _read_image,
    ClassificationTask: _read_tokens,
    EmbeddingTask: _read_tokens,
    MaskedLMTask: _read_tokens,
    TokenClassificationTask: _read_tokens,
}
