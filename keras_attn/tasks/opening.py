"""Opens runs, task folders, SavedModels and folders with several of them.

All commands resolve a folder here:

- A task folder (it contains `task.json`) is the task, a version folder (`saved_model.pb`) the
  SavedModel.
- Any other folder may contain versions of a SavedModel, named by whole numbers, and a task in
  `task/`: an export contains the former, a run the latter, and a model in `saved_models/` both.
  Prediction uses the highest version, or the task if there is no version. Commands that need a
  task, such as `train --init` and `export`, use `task/`.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf

# Registers the ops that a SavedModel with tokenizers needs.
import tensorflow_text  # noqa: F401

from keras_attn.export_manifest import MANIFEST, read_manifest
from keras_attn.model_versions import SAVED_MODEL, latest_version, version_folders
from keras_attn.task_names import current_task_name
from keras_attn.tasks.base import TASK_FILE, Task
from keras_attn.tasks.exported.base import Exported, require_signatures
from keras_attn.tasks.weights import require_finite
from keras_attn.validation import UserError, require_one_of

RUN_TASK = "task"
"""Folder of the trained task in a run or in a model of `saved_models/`."""


def task_folder(path: str | Path) -> Path:
    """Finds the task folder of a run, a model folder or a task folder.

    Args:
        path: A run folder, a model folder or a task folder.

    Returns:
        The task folder.

    Raises:
        UserError: There is none.

    Examples:
        >>> str(task_folder("saved_models/g2p_en"))
        'saved_models/g2p_en/task'
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path} does not exist.")
    for folder in (path, path / RUN_TASK):
        if (folder / TASK_FILE).is_file():
            return folder
    if _is_exported(path):
        raise UserError(f"{path} contains only a SavedModel: a run or a task folder is needed.")
    if (path / "run.yaml").is_file():
        raise UserError(
            f"The run {path} has no trained task yet: `keras-attn train --out {path} --resume` "
            "resumes it."
        )
    if (path / "config.json").is_file():
        raise UserError(
            f"{path} has no task. If it is a Hugging Face checkpoint, convert it: `keras-attn "
            f"convert {path} OUT`."
        )
    raise UserError(f"{path} is neither a run nor a task folder, and holds no export.")


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
        >>> task = open_task("saved_models/g2p_en/task")  # as `keras_attn.load` does
        >>> task.kind, type(task).__name__
        ('seq2seq', 'Seq2SeqTask')
    """
    path = Path(path)
    return open_exported(path) if _is_exported(path) else Task.load(task_folder(path))


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


def _is_exported(path: Path) -> bool:
    if (path / TASK_FILE).is_file():
        return False
    return (path / SAVED_MODEL).is_file() or bool(version_folders(path))
