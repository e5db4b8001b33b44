"""Opens runs, task folders, SavedModels and folders with several of them.

All commands resolve a folder here:

- A task folder (it contains `task.json`) is the task, a version folder (`saved_model.pb`) the
  SavedModel.
- Any other folder may contain versions of a SavedModel, named by whole numbers, as an export does,
  and a task in `task/`, as a run does. Prediction uses the highest version, or the task if there is
  no version. Commands that need a task, such as `train --init` and `export`, use `task/`, or the
  task that is part of the highest version, with its exported weights.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf

# Registers the ops that a SavedModel with tokenizers needs.
import tensorflow_text  # noqa: F401

from keras_attn.export_manifest import MANIFEST, read_manifest
from keras_attn.model_versions import latest_version
from keras_attn.task_folders import is_exported, task_folder
from keras_attn.task_names import current_task_name
from keras_attn.tasks.base import Task
from keras_attn.tasks.exported.base import Exported, require_signatures
from keras_attn.tasks.weights import require_finite
from keras_attn.validation import UserError, require_one_of


def open_task(path: str | Path) -> Task | Exported:
    """Opens a run, a task folder or a SavedModel for prediction.

    Args:
        path: A run folder of `keras-attn train`, a folder of `Task.save`, a folder of
            `keras-attn export` (with or without the version), or a model of `saved_models/`.

    Returns:
        The task, or an exported task with the same prediction methods.

    Raises:
        UserError: The path contains none of them, or is damaged.

    Examples:
        >>> task = open_task("saved_models/g2p_en")  # as `keras_attn.load` does
        >>> task.kind, type(task).__name__
        ('seq2seq', 'ExportedSeq2Seq')
    """
    path = Path(path)
    return open_exported(path) if is_exported(path) else Task.load(task_folder(path))


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

    Examples:
        >>> task = open_exported("saved_models/g2p_en")  # of the highest version
        >>> task.kind, task.folder.name
        ('seq2seq', '1')
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
