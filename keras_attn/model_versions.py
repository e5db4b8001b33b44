"""Versions of a SavedModel, `NAME/<version>/`: TensorFlow Serving runs the highest."""

from pathlib import Path

from keras_attn.validation import require

SAVED_MODEL = "saved_model.pb"
LARGEST_VERSION = 2**63 - 1


def version_folders(folder: str | Path) -> dict[int, Path]:
    """Returns the folders in a model folder that are named by versions, in ascending order.

    As in TensorFlow Serving, versions are decimal numbers below 2**63, which zeros may precede;
    everything else is ignored. Of two names of one version the shorter counts.
    """
    folder = Path(folder)
    found = folder.iterdir() if folder.is_dir() else ()
    numbered = (path for path in found if path.name.isascii() and path.name.isdecimal())
    shortest_last = sorted(numbered, key=lambda path: len(path.name), reverse=True)
    versions = {int(path.name): path for path in shortest_last if path.is_dir()}
    return {number: versions[number] for number in sorted(versions) if number <= LARGEST_VERSION}


def latest_version(folder: str | Path) -> Path:
    """Finds the SavedModel in a model folder.

    Args:
        folder: A version folder itself, or the folder above, of which the highest version counts.

    Returns:
        The version folder, which holds `saved_model.pb`.

    Raises:
        UserError: There is none.
    """
    folder = Path(folder)
    require(folder.is_dir(), "There must be a folder with a SavedModel.", folder=str(folder))
    versions = {} if (folder / SAVED_MODEL).is_file() else version_folders(folder)
    latest = versions[max(versions)] if versions else folder
    require(
        (latest / SAVED_MODEL).is_file(),
        f"A SavedModel folder holds {SAVED_MODEL!r}, itself or under its highest version.",
        folder=str(latest),
    )
    return latest
