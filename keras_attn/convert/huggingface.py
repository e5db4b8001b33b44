"""Conversion of Hugging Face folders by the model type in their `config.json`."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_attn.checkpoints import check_checkpoint, require_model_type
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.encoders.bert import (
    ALBERT,
    BERT,
    CAMEMBERT,
    DISTILBERT,
    ELECTRA,
    MPNET,
    ROBERTA,
    XLM_ROBERTA,
)
from keras_attn.convert.encoders.big_bird import BIG_BIRD
from keras_attn.convert.encoders.deberta import DEBERTA
from keras_attn.convert.encoders.longformer import LONGFORMER
from keras_attn.convert.encoders.models import convert_encoder
from keras_attn.convert.encoders.modernbert import MODERNBERT
from keras_attn.convert.encoders.nystromformer import NYSTROMFORMER
from keras_attn.convert.encoders.sentence_transformers import transformer_folder
from keras_attn.convert.encoders.tasks import convert_text_encoder
from keras_attn.convert.files.configuration import CONFIG
from keras_attn.convert.generators.gpt2 import convert_gpt2
from keras_attn.convert.generators.marian import convert_marian
from keras_attn.convert.generators.t5 import convert_t5
from keras_attn.convert.vit import convert_vit
from keras_attn.documents import read_json_object
from keras_attn.tasks import Task
from keras_attn.validation import UserError

ENCODERS = {
    family.model_type: family
    for family in (
        *(ALBERT, BERT, BIG_BIRD, CAMEMBERT, DEBERTA, DISTILBERT, ELECTRA, LONGFORMER),
        *(MODERNBERT, MPNET, NYSTROMFORMER, ROBERTA, XLM_ROBERTA),
    )
}
"""Text encoders by `model_type`, which are converted without their tokenizers too."""

CONVERTERS: dict[str, Callable[[Path, dict], Conversion]] = {
    **{name: partial(convert_text_encoder, family) for name, family in ENCODERS.items()},
    "gpt2": convert_gpt2,
    "marian": convert_marian,
    "t5": convert_t5,
    **dict.fromkeys(("deit", "vit"), convert_vit),
}
"""Converters by `model_type`; each takes the folder and the content of its `config.json`."""


def convert_huggingface(folder: str | Path) -> Conversion:
    """Converts a folder written by `save_pretrained` of transformers or sentence-transformers.

    Every tensor of the checkpoint is used or mentioned in the notes, and every key of its
    configuration that affects the outputs is supported or refused. Only safetensors are read,
    never pickles, and no code of the folder is run.

    Args:
        folder: The folder, with `config.json`, the weights and the tokenizer's files.

    Returns:
        The task, with notes for the user.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported; one
            line that names the file.

    Examples:
        >>> task, notes = convert_huggingface("bert")  # a folder of `save_pretrained`
        >>> type(task).__name__
        'EmbeddingTask'
        >>> print(*notes)
        Not used: the head of masked language modeling (cls.predictions.*).
    """
    folder = Path(folder)
    path = check_checkpoint(folder)
    transformer_folder(folder)
    config = read_json_object(path)
    kind = config.get("model_type")
    with _damage_named(folder, path):
        return CONVERTERS[kind](folder, config)


@contextlib.contextmanager
def _damage_named(folder: Path, path: Path) -> Iterator[None]:
    """Raises `UserError` with the name of the folder for what a damaged checkpoint leads to."""
    try:
        yield
    except UserError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{folder} is damaged: {type(error).__name__}: {reason}") from error
    except (MemoryError, tf.errors.ResourceExhaustedError) as error:
        raise UserError(f"{path}: a model of this size does not fit into memory.") from error


def from_huggingface(folder: str | Path) -> Task:
    """Converts a Hugging Face folder to a task; unused parts are reported as warnings.

    Args:
        folder: See `convert_huggingface`.

    Returns:
        The task: for BERT, depending on the architecture, a `MaskedLMTask`, a
        `ClassificationTask`, a `TokenClassificationTask` or (also for sentence-transformers) an
        `EmbeddingTask`; for Longformer a `ClassificationTask` or an `EmbeddingTask`; a
        `CausalLMTask` for GPT-2, a `Seq2SeqTask` for T5 and Marian.

    Raises:
        UserError: See `convert_huggingface`.

    Examples:
        >>> task = from_huggingface("tiny_bert")  # a folder of `save_pretrained`
        >>> vectors = task.predict(["The cats sat on the mat.", "a dog"])
        >>> vectors.shape
        (2, 21)
    """
    conversion = convert_huggingface(folder)
    for note in conversion.notes:
        warnings.warn(note, stacklevel=2)
    return conversion.task


def model_from_huggingface(
    folder: str | Path, padding_id: int | None = None, **options: Any
) -> keras.Model:
    """Converts a text encoder without its tokenizer.

    Padding is 0 here. Ids below the checkpoint's id of padding are one greater here, and the others
    are the same.

    Args:
        folder: The folder, with `config.json` and the weights. Pickles are not read.
        padding_id: The checkpoint's id of padding. By default that of the folder's tokenizer,
            or without its files that of `config.json`, which may differ.
        **options: For Longformer `global_length`, the number of first tokens that are global, 1 by
            default. transformers has one in classifiers of texts, and none elsewhere unless it
            is called with a `global_attention_mask`.

    Returns:
        By the architecture a `MaskedLanguageModel`, a `SequenceClassifier`, a `TokenClassifier`
        or, for other architectures, the encoder: a `Bert` with attention of that family. Unused
        parts are reported as warnings.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported; one
            line that names the file.

    Examples:
        >>> model = model_from_huggingface("big_bird")  # a folder of `save_pretrained`
        >>> ids, mask = np.array([[7, 5, 9], [3, 8, 0]]), np.array([[1, 1, 1], [1, 1, 0]])
        >>> padding_id = 0  # of the checkpoint
        >>> logits = model({"token_ids": np.where(mask, ids + (ids < padding_id), 0)})
        >>> logits.shape
        (2, 3, 29)
    """
    folder = Path(folder)
    path = folder / CONFIG
    config = read_json_object(path)
    require_model_type(path, config.get("model_type"), ENCODERS)
    family = ENCODERS[config["model_type"]]
    with _damage_named(folder, path):
        kind = family.head(config)
        converted = convert_encoder(family, folder, config, kind, padding_id, **options)
    for note in converted.notes:
        warnings.warn(note, stacklevel=2)
    return converted.model
