"""Finds the task inside of runs, exports and models of `saved_models/`."""

from pathlib import Path

from keras_attn.model_versions import SAVED_MODEL, version_folders

TASK_FILE = "task.json"

RUN_TASK = "task"
"""Folder of the trained task in a run or in a model folder."""

EXPORTED_TASK = Path("assets.extra", "task")
"""Folder of the task in a version of an export."""


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
