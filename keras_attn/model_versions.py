"""Versions of a SavedModel, `NAME/<version>/`: TensorFlow Serving runs the highest."""

from pathlib import Path

from keras_attn.validation import require

SAVED_MODEL = "saved_model.pb"
LARGEST_VERSION = 2**63 - 1


def version_folders(folder: str | Path) -> dict[int, Path]:
    """Returns the folders in a model folder that are named by versions, in ascending order.

    As in TensorFlow Serving, versions are decimal numbers below 2**63, which zeros may precede;
    everything else is ignored. Of two names of the same version the shorter is used.
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
        folder: A version folder, or the folder above, whose highest version is used.

    Returns:
        The version folder, which contains `saved_model.pb`.

    Raises:
        UserError: There is no SavedModel.
    """
    folder = Path(folder)
    require(folder.is_dir(), "The folder of the SavedModel does not exist.", folder=str(folder))
    versions = {} if (folder / SAVED_MODEL).is_file() else version_folders(folder)
    latest = versions[max(versions)] if versions else folder
    require(
        (latest / SAVED_MODEL).is_file(),
        f"A SavedModel folder, or its highest version, must contain {SAVED_MODEL!r}.",
        folder=str(latest),
    )
    return latest
