"""Conversion of Hugging Face folders by the model type in their `config.json`."""

import warnings
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from keras_attn.convert.bert import convert_bert
from keras_attn.convert.configuration import CONFIG
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.gpt2 import convert_gpt2
from keras_attn.convert.json_files import named_in_errors
from keras_attn.convert.marian import convert_marian
from keras_attn.convert.sentence_transformers import transformer_folder
from keras_attn.convert.t5 import convert_t5
from keras_attn.documents import read_json_object
from keras_attn.tasks import Task
from keras_attn.validation import UserError, require, require_one_of

CONVERTERS: dict[str, Callable[[Path, dict], Conversion]] = {
    "bert": convert_bert,
    "gpt2": convert_gpt2,
    "marian": convert_marian,
    "t5": convert_t5,
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
    if not folder.exists():
        raise UserError(f"{folder} does not exist.")
    require(
        folder.is_dir(),
        "A checkpoint must be a folder with config.json, or g2p_en's .npz file.",
        file=str(folder),
    )
    model_folder = transformer_folder(folder)
    path = model_folder / CONFIG
    config = read_json_object(path)
    with named_in_errors(path):
        require_one_of("model_type", config.get("model_type"), CONVERTERS)
    try:
        return CONVERTERS[config["model_type"]](folder, config)
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
        `EmbeddingTask`; a `CausalLMTask` for GPT-2, a `Seq2SeqTask` for T5 and Marian.

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
