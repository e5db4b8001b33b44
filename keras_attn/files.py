"""Atomic writing of files and folders, and the lock of a folder."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from keras_attn.validation import UserError, require

LOCK_FILE = ".lock"
"""What the process that writes a run holds."""

_TEMPORARY = ".writing-"
_OLD = "old-"


@contextlib.contextmanager
def replaced_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary name to write to; the file replaces `path` on success.

    After a failure the old file remains. The contents are on disk before the file is renamed.

    Raises:
        UserError: `path` is a folder, or its folder is missing or cannot be written to.
    """
    path = Path(path)
    require(not path.is_dir(), "The output file is an existing folder.", path=str(path))
    temporary = path.with_name(f"{_TEMPORARY}{path.name}.{os.getpid()}")
    with _named_by(path):
        temporary.touch()
    mode = temporary.stat().st_mode
    try:
        with _naming(path):
            yield temporary
            temporary.chmod(mode)
            _flush(temporary)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes a UTF-8 file atomically."""
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def replaced_folder(folder: str | Path) -> Iterator[Path]:
    """Yields a temporary folder that replaces `folder` on success.

    After a failure the old folder remains. If the process is killed between the two renames,
    `remove_unfinished` restores it.

    Raises:
        UserError: The folder above cannot be written to.
    """
    folder = Path(folder)
    temporary = folder.with_name(_TEMPORARY + folder.name)
    old = folder.with_name(_TEMPORARY + _OLD + folder.name)
    shutil.rmtree(temporary, ignore_errors=True)
    with _named_by(folder):
        temporary.mkdir(parents=True)
    try:
        with _naming(folder):
            yield temporary
            _give_modes_of_umask(temporary)
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            temporary.rename(folder)
            _flush(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_room(path: Path, size: int) -> None:
    """Checks that the disk has enough space for a file.

    HDF5 crashes the process if it cannot close a file for lack of space.

    Args:
        path: Path of the file, which must not exist.
        size: Its size in bytes.

    Raises:
        OSError: There is not enough space.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        with path.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    finally:
        path.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Removes unfinished files of a killed process, and restores a folder that it had moved."""
    for path in folder.glob(_TEMPORARY + "*"):
        name = path.name.removeprefix(_TEMPORARY)
        original = folder / name.removeprefix(_OLD)
        if name.startswith(_OLD) and not original.exists():
            path.rename(original)
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Adds the name of a file to errors without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def _named_by(path: Path) -> Iterator[None]:
    """Makes an error about the folder of `path` with the name that users know."""
    try:
        yield
    except OSError as error:
        folder = path.absolute().parent
        expected = f"must be writable: {error.strerror}" if folder.is_dir() else "must exist"
        raise UserError(f"The folder of a file {expected}. Received: {str(path)!r}.") from error


def _give_modes_of_umask(folder: Path) -> None:
    """Some libraries write files that only their owner may read."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wait_for_writer(path: str | Path, say: Callable[[str], None]) -> None:
    """Waits until no process writes a run.

    Args:
        path: The run folder, which need not be there.
        say: Called with who writes it, if anybody does.
    """
    try:
        handle = os.open(Path(path) / LOCK_FILE, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say(os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process")
        fcntl.flock(handle, fcntl.LOCK_EX)
    finally:
        os.close(handle)
