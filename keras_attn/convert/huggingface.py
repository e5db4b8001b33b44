"""Folders of Hugging Face, converted by the architecture that their `config.json` names."""

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
from keras_attn.tasks.operations import operation
from keras_attn.validation import UserError, require, require_one_of

CONVERTERS: dict[str, Callable[[Path, dict], Conversion]] = {
    "bert": convert_bert,
    "gpt2": convert_gpt2,
    "marian": convert_marian,
    "t5": convert_t5,
}
"""By `model_type`: from the folder and the content of its `config.json`."""


def convert_huggingface(folder: str | Path) -> Conversion:
    """Converts what `save_pretrained` of transformers, or sentence-transformers, has written.

    Every tensor of the checkpoint is used, or is named in the notes; every key of its
    configuration is followed or has no effect on what the model computes. Only safetensors are
    read, never pickles, and no code of the folder is run.

    Args:
        folder: The folder, with `config.json`, the weights and the tokenizer's files.

    Returns:
        The task, and what a user has to know about it.

    Raises:
        UserError: A file is missing or damaged, or asks for something that is not supported; one
            line that names the file.
    """
    folder = Path(folder)
    if not folder.exists():
        raise UserError(f"There is nothing at {folder}.")
    require(
        folder.is_dir(),
        "A checkpoint is a folder with config.json, or g2p_en's .npz file.",
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
        raise UserError(f"{path}: a model of these sizes does not fit into memory.") from error


@operation("from_huggingface")
def from_huggingface(folder: str | Path) -> Task:
    """Converts a checkpoint folder to a task; what is left out of it is a warning.

    Args:
        folder: See `convert_huggingface`.

    Returns:
        The task: for BERT, by its architecture, a `MaskedLMTask`, a `ClassificationTask`, a
        `TokenClassificationTask` or, for others and for sentence-transformers, an `EmbeddingTask`;
        a `CausalLMTask` for GPT-2, a `Seq2SeqTask` for T5 and Marian.

    Raises:
        UserError: See `convert_huggingface`.
    """
    conversion = convert_huggingface(folder)
    for note in conversion.notes:
        warnings.warn(note, stacklevel=2)
    return conversion.task
