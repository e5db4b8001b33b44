"""Saving of tasks and models as folders of Hugging Face."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.generators.gpt2 import outgoing_gpt2
from keras_attn.convert.generators.marian import outgoing_marian
from keras_attn.convert.generators.t5 import outgoing_t5
from keras_attn.convert.huggingface import ENCODERS
from keras_attn.convert.outgoing_encoder import outgoing_encoder, outgoing_model
from keras_attn.convert.outgoing_vit import outgoing_vit
from keras_attn.models import GPT2, T5, Bert, Marian, PatchEncoder
from keras_attn.tasks import Task
from keras_attn.validation import UserError, require_one_of

SAVERS: dict[type[keras.Model], Callable[[Any], Outgoing]] = {
    Bert: outgoing_encoder,
    GPT2: outgoing_gpt2,
    Marian: outgoing_marian,
    PatchEncoder: outgoing_vit,
    T5: outgoing_t5,
}
"""What describes the folder of a task, by the class of its model or of its encoder."""


def write_huggingface(task: Task, folder: str | Path) -> tuple[str, ...]:
    """Writes a task as a folder that `from_pretrained` of transformers reads.

    The folder contains `config.json`, `model.safetensors` (several files above 5 GB), the files of
    the tokenizer, `generation_config.json` for generating models, and for embeddings the files of
    sentence-transformers. `convert_huggingface` reads it too.

    Args:
        task: A task whose model is, or has as its encoder, a `Bert`, `GPT2`, `T5`, `Marian` or
            `PatchEncoder`.
        folder: The folder; it must be new, empty or contain a checkpoint and nothing else.

    Returns:
        Notes for the user, one line each.

    Raises:
        UserError: transformers has no class for the task, which the message explains, or the
            folder cannot be written.

    Examples:
        >>> task = from_huggingface("tiny_bert")  # a folder of `save_pretrained`
        >>> write_huggingface(task, "huggingface/bert")
        ()
    """
    model = task.backbone
    kind = type(getattr(model, "encoder", model) if type(model) not in SAVERS else model)
    if kind not in SAVERS:
        listed = ", ".join(one.__name__ for one in SAVERS)
        raise UserError(
            f"transformers has no class for this model; supported are {listed}. "
            f"Received: model={kind.__name__}."
        )
    outgoing = SAVERS[kind](task)
    outgoing.write(folder)
    return outgoing.notes


def save_huggingface(task: Task, folder: str | Path) -> None:
    """Saves a task as a Hugging Face folder; differences are reported as warnings.

    Args:
        task: See `write_huggingface`.
        folder: The folder; it must be new, empty or contain a checkpoint and nothing else.

    Raises:
        UserError: See `write_huggingface`.

    Examples:
        >>> task = from_huggingface("tiny_bert")  # a folder of `save_pretrained`
        >>> save_huggingface(task, "huggingface/bert")
        >>> from_huggingface("huggingface/bert")
        EmbeddingTask(Bert, 21 features)
    """
    for note in write_huggingface(task, folder):
        warnings.warn(note, stacklevel=2)


def model_to_huggingface(
    model: keras.Model,
    folder: str | Path,
    padding_id: int | None = None,
    model_type: str | None = None,
) -> None:
    """Saves an encoder without its tokenizer, as `model_from_huggingface` reads it.

    Args:
        model: A `Bert`, or a `MaskedLanguageModel`, `SequenceClassifier` or `TokenClassifier` on
            one, with the values of one of the architectures that are converted.
        folder: The folder; it must be new, empty or contain a checkpoint and nothing else.
        padding_id: The checkpoint's id of padding, which is 0 here; by default that of the
            architecture. Our ids up to it are one less there, and the others are the same.
        model_type: The architecture, where a model fits several, such as "xlm-roberta"; by default
            the first of "bert", "roberta" and the others.

    Raises:
        UserError: transformers has no class for the model, which the message explains, or the
            folder cannot be written.

    Examples:
        >>> model = model_from_huggingface("big_bird")  # a folder of `save_pretrained`
        >>> model_to_huggingface(model, "huggingface/big_bird")
    """
    if model_type is not None:
        require_one_of("model_type", model_type, ENCODERS)
    family = None if model_type is None else ENCODERS[model_type]
    outgoing_model(model, padding_id, family).write(folder)
