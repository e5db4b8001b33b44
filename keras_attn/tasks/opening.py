"""Opens whatever can predict: a run, a task folder, a SavedModel, or a folder with several of them.

What counts in a folder is decided here alone, for all commands:

- A task folder (it holds `task.json`) is the task, a version folder (`saved_model.pb`) the
  SavedModel.
- Any other folder may hold versions of a SavedModel, named by whole numbers, and a task in
  `task/`; a run holds the latter, an export the former, and a model in `saved_models/` both.
  Prediction takes the highest version, and the task where there is none. What needs a task, such
  as `train --init` and `export`, takes `task/`.
"""

from pathlib import Path

from keras_attn.model_versions import SAVED_MODEL, version_folders
from keras_attn.tasks.base import TASK_FILE, Task
from keras_attn.tasks.exported import Exported, open_exported
from keras_attn.validation import UserError

RUN_TASK = "task"
"""Folder of a run, or of a model in `saved_models/`, that holds its trained task."""


def task_folder(path: str | Path) -> Path:
    """Finds the task folder in a run or a model folder, or takes a task folder as it is.

    Args:
        path: A run folder, a model folder or a task folder.

    Returns:
        The task folder.

    Raises:
        UserError: There is none.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"There is nothing at {path}.")
    for folder in (path, path / RUN_TASK):
        if (folder / TASK_FILE).is_file():
            return folder
    if _is_exported(path):
        raise UserError(f"{path} holds a SavedModel alone: a run or a task folder is expected.")
    if (path / "run.yaml").is_file():
        raise UserError(
            f"The run {path} holds no trained task yet: `keras-attn train --out {path} --resume` "
            "goes on with it."
        )
    if (path / "config.json").is_file():
        raise UserError(
            f"{path} holds no task. If it is a checkpoint of Hugging Face, `keras-attn convert "
            f"{path} OUT` makes one of it."
        )
    raise UserError(f"{path} holds neither a run nor a task.")


def open_task(path: str | Path) -> Task | Exported:
    """Opens a run, a task folder or a SavedModel for prediction.

    Args:
        path: A run folder of `keras-attn train`, a folder of `Task.save`, a folder of
            `keras-attn export` (with or without the version), or a model of `saved_models/`.

    Returns:
        The task, or an exported one with the same methods for prediction.

    Raises:
        UserError: The path holds none of them, or a damaged one.
    """
    path = Path(path)
    return open_exported(path) if _is_exported(path) else Task.load(task_folder(path))


def _is_exported(path: Path) -> bool:
    if (path / TASK_FILE).is_file():
        return False
    return (path / SAVED_MODEL).is_file() or bool(version_folders(path))
