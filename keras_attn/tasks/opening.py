"""Opens whatever can predict: a run, a task folder or a SavedModel."""

from pathlib import Path

from keras_attn.tasks.base import TASK_FILE, Task
from keras_attn.tasks.exported import ExportedSeq2Seq, latest_version
from keras_attn.validation import UserError

RUN_TASK = "task"
"""Folder of a run that holds its trained task."""


def task_folder(path: str | Path) -> Path:
    """Finds the task folder in a run, or takes a task folder as it is.

    Args:
        path: A run folder or a task folder.

    Returns:
        The task folder.

    Raises:
        UserError: There is none.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"There is nothing at {path}: a run or a task folder is expected.")
    for folder in (path, path / RUN_TASK):
        if (folder / TASK_FILE).is_file():
            return folder
    if (path / "run.yaml").is_file():
        raise UserError(f"The run {path} has not finished: it holds no trained task yet.")
    raise UserError(f"{path} holds neither a run nor a task.")


def open_task(path: str | Path) -> Task | ExportedSeq2Seq:
    """Opens a run, a task folder or a SavedModel for prediction.

    Args:
        path: A run folder of `keras-attn train`, a folder of `Task.save`, or a folder of
            `keras-attn export` (with or without the version).

    Returns:
        The task, or an exported one with the same methods for prediction.

    Raises:
        UserError: The path holds none of them, or a damaged one.
    """
    path = Path(path)
    if path.is_dir() and not (path / TASK_FILE).is_file() and not (path / "run.yaml").is_file():
        numbered = any(child.name.isdecimal() for child in path.iterdir())
        if numbered or (path / "saved_model.pb").is_file():
            return ExportedSeq2Seq(latest_version(path))
    return Task.load(task_folder(path))
