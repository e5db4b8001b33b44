"""Opens exported tasks."""

from pathlib import Path
from typing import Any

import tensorflow as tf

# Registers the ops that a SavedModel with tokenizers needs.
import tensorflow_text  # noqa: F401

from keras_attn.export_manifest import MANIFEST, read_manifest
from keras_attn.model_versions import latest_version
from keras_attn.task_names import current_task_name
from keras_attn.tasks.exported.base import Exported, require_signatures
from keras_attn.tasks.weights import require_finite
from keras_attn.validation import UserError, require_one_of


def open_exported(folder: str | Path) -> Exported:
    """Opens an exported task by the `task` of its manifest.

    Args:
        folder: A version folder (it contains `saved_model.pb`), or a model folder, whose highest
            version is used.

    Returns:
        The exported task.

    Raises:
        UserError: The folder contains no SavedModel, a damaged one, or one that `keras_attn` did
            not export.
    """
    folder = latest_version(folder)
    model = _load(folder)
    task = current_task_name(read_manifest(folder).get("task"))
    require_one_of(f"{folder / MANIFEST}: `task`", task, Exported.classes)
    return Exported.classes[task](folder, model)


def _load(folder: Path) -> Any:
    try:
        model = tf.saved_model.load(str(folder))
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:  # Index: cut short
        first_line = str(error).strip().splitlines()[0]
        raise UserError(f"{folder} is a damaged SavedModel: {first_line}") from error
    require_signatures(folder, model, frozenset({"serving_default"}))
    used = (each for signature in model.signatures.values() for each in signature.variables)
    require_finite({id(each): each for each in used}.values(), f"{folder}: ")
    return model
