"""Finds the task inside of runs, exports and models of `saved_models/`."""

from pathlib import Path

from keras_attn.model_versions import SAVED_MODEL, version_folders
from keras_attn.validation import UserError

TASK_FILE = "task.json"

RUN_TASK = "task"
"""Folder of the trained task in a run or in a model folder."""

EXPORTED_TASK = Path("assets.extra", "task")
"""Folder of the task in a version of an export."""


def task_folder(path: str | Path) -> Path:
    """Finds the task folder in a run, an export, a model folder or a task folder.

    Args:
        path: A run folder, an export, a model folder or a task folder.

    Returns:
        The task folder.

    Raises:
        UserError: There is none.

    Examples:
        >>> str(task_folder("saved_models/g2p_en"))
        'saved_models/g2p_en/1/assets.extra/task'
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path} does not exist.")
    if found := find_task(path):
        return found
    if is_exported(path):
        raise UserError(
            f"{path} contains only a SavedModel, exported without its task: a run or a task "
            "folder is needed."
        )
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


def find_task(folder: Path) -> Path | None:
    """Returns the task folder that a folder is or contains, of its highest version if exported."""
    versions = version_folders(folder)
    latest = versions[max(versions)] if versions else folder
    for found in (folder, folder / RUN_TASK, latest / EXPORTED_TASK):
        if (found / TASK_FILE).is_file():
            return found
    return None


def is_exported(folder: Path) -> bool:
    """Whether a folder is a SavedModel or contains versions of one."""
    if (folder / TASK_FILE).is_file():
        return False
    return (folder / SAVED_MODEL).is_file() or bool(version_folders(folder))
