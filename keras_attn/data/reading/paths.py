"""Names of files: patterns and folders."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from keras_attn.data.reading.content import is_remote, suffixes_of
from keras_attn.data.reading.table import shown_names
from keras_attn.data.reading.tables import form_of
from keras_attn.validation import UserError, require

_MARKS = "*?["


def expanded(paths: Sequence[str | os.PathLike] | str | os.PathLike) -> list[str]:
    """Lists the files that paths mean.

    Args:
        paths: Files, patterns such as `data/*.csv`, or folders, whose files must all be of one
            form; names that begin with a dot or an underscore are ignored there.

    Returns:
        The files; those of a pattern or a folder in the order of their names.

    Raises:
        UserError: A pattern matches nothing, or a folder has no files or files of several forms.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return [file for path in paths for file in _files_of(str(path))]


def _files_of(path: str) -> list[str]:
    if is_remote(path):
        return _remote_files(path)
    require("\0" not in path and bool(path.strip()), f"{path!r} is not a valid file name.")
    if Path(path).is_dir():
        return _files_in(path)
    if any(mark in path for mark in _MARKS) and not os.path.lexists(path):
        # Path has no patterns that begin at the root.
        matches = glob.iglob(path, recursive=True)  # noqa: PTH207
        found = sorted(name for name in matches if Path(name).is_file())
        require(bool(found), f"No file matches the pattern {path}.")
        return found
    return [path]


def _files_in(folder: str) -> list[str]:
    names = sorted(
        entry.path
        for entry in os.scandir(folder)
        if entry.is_file() and not entry.name.startswith((".", "_"))
    )
    if not names:
        inner = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        hint = f", but the folders {shown_names(inner)}: name one, or a pattern" if inner else ""
        raise UserError(f"{folder}: the folder has no file{hint}.")
    forms = {(form_of(name), *suffixes_of(Path(name).name)[-1:]) for name in names}
    if len(forms) > 1:
        raise UserError(
            f"{folder}: the files of a folder must be of one form; name them instead. Received: "
            f"{', '.join(sorted(Path(name).name for name in names)[:8])}."
        )
    return names


def _remote_files(path: str) -> list[str]:
    import tensorflow as tf

    try:
        if any(mark in path for mark in _MARKS):
            found = sorted(tf.io.gfile.glob(path))
            require(bool(found), f"No file matches the pattern {path}.")
            return found
        if tf.io.gfile.isdir(path):
            names = sorted(tf.io.gfile.listdir(path))
            return [f"{path.rstrip('/')}/{name}" for name in names if name[0] not in "._"]
    except tf.errors.OpError as error:
        raise UserError(f"{path}: cannot be read ({error.message}).") from None
    return [path]
