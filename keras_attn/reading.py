"""Reading of files that may be damaged, hostile or missing."""

import contextlib
import csv
import importlib.resources
import io
import stat
from collections.abc import Iterator
from pathlib import Path

from keras_attn.limits import FILE_BYTES, Limit
from keras_attn.validation import UserError, require


def read_bytes(path: str | Path, limit: Limit = FILE_BYTES) -> bytes:
    """Reads a regular file, not a folder, pipe or device.

    Args:
        path: The file.
        limit: Largest size in bytes.

    Raises:
        UserError: It is missing, cannot be read, is not a regular file or is too large.
    """
    path = Path(path)
    limit.check(require_regular(path), str(path))  # before it is opened: a pipe waits for a writer
    with _told(path):
        return path.read_bytes()


def require_regular(path: Path) -> int:
    """Refuses folders, pipes and devices, and returns the size of a regular file in bytes.

    Args:
        path: The file.

    Raises:
        UserError: See `read_bytes`.
    """
    with _told(path):
        status = path.stat()
        require(stat.S_ISREG(status.st_mode), f"{path}: expected a regular file.")
        return status.st_size


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Makes an error of one line for a file that cannot be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path}: no such file.") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.") from None
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{str(path)!r} is not a valid file name.") from None  # it has a NUL


def read_text(path: str | Path, limit: Limit = FILE_BYTES) -> str:
    """Reads a regular file of UTF-8.

    Args:
        path: The file.
        limit: Largest size in bytes.

    Raises:
        UserError: See `read_bytes`, or it is not UTF-8.
    """
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected a UTF-8 file: {error}.") from None


def read_resource(*names: str) -> str:
    """Reads a text file of this package.

    Args:
        *names: The names of its folders and of the file.
    """
    return importlib.resources.files("keras_attn").joinpath(*names).read_text("utf-8")


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Reads the rows of a CSV file by the names of its columns.

    Args:
        path: The file, whose first line contains the names of the columns.

    Raises:
        UserError: See `read_text`, or it is not CSV.
    """
    try:
        return list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    except csv.Error as error:
        raise UserError(f"{path}: expected a CSV file: {error}.") from None


def path_inside(folder: Path, name: object, source: str) -> Path:
    """Returns the path of a file or folder whose name is in another file.

    Args:
        folder: The folder that must contain it.
        name: Its name, as read.
        source: Name of the other file in messages.

    Raises:
        UserError: It is not a plain name, or a link to a place outside of the folder.
    """
    plain = isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0:")
    require(
        plain and name.isprintable() and len(name.encode("utf-8", "replace")) < 256,
        f"{source} may only refer to files in its folder.",
        name=name,
    )
    path = folder / name
    found = False
    with contextlib.suppress(OSError, RuntimeError):  # a link to itself
        found = path.resolve().is_relative_to(folder.resolve())
    require(
        found,
        f"{source} may only refer to files in its folder; this is a link to another place.",
        name=name,
    )
    return path
