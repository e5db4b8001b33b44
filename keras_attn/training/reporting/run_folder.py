"""The folder of a run: its lock and its files."""

import contextlib
import fcntl
import os
import platform
from collections.abc import Collection
from pathlib import Path

from keras_attn.files import remove_unfinished
from keras_attn.validation import UserError

_LOCK = ".lock"
# Names that the folder may hold before training starts.
PREPARED = ("run.yaml", "tokenizers", "data", "start")
CHECKPOINTS_FOLDER = "checkpoints"
SUMMARY_FILE = "summary.json"


def require_new(path: str | Path, allowed: Collection[str] = PREPARED) -> None:
    """Raises a UserError if a folder holds a run already.

    Args:
        path: The folder, which may not exist.
        allowed: Names that it may hold; and any that begin with a dot.
    """
    path = Path(path)
    present = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    others = [name for name in present if name[0] != "." and name not in allowed]
    if others:
        raise UserError(
            "The output folder must be empty, or the run in it resumed (`--resume`). "
            f"Received: {str(path)!r}, which holds {', '.join(others[:3])}."
        )


class RunFolder:
    """A run's folder, held by one process at a time.

    Use as a context manager. Attributes: `path`, `checkpoints`, `task`, `summary`, `metrics`,
    `timings`, `samples`, `tensorboard`.

    Args:
        path: The folder; made if it does not exist.
        resume: Whether it may hold an earlier part of the run.
        allowed: Names that it may hold, besides those that begin with a dot.
        writes: Whether this process writes it, which only one of several workers does.

    Raises:
        UserError: It cannot be written, holds something else, or another process writes it.
    """

    def __init__(
        self,
        path: str | Path,
        resume: bool = False,
        allowed: Collection[str] = ("run.yaml",),
        writes: bool = True,
    ) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / CHECKPOINTS_FOLDER
        self.task = self.path / "task"
        self.summary = self.path / SUMMARY_FILE
        self.metrics = self.path / "metrics.csv"
        self.timings = self.path / "timings.csv"
        self.samples = self.path / "samples.json"
        self.tensorboard = self.path / "tensorboard"
        self._resume = resume
        self._allowed = allowed
        self._writes = writes
        self._handle = None

    def __enter__(self) -> "RunFolder":
        if not self._writes:
            return self
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(
                f"The output folder must be writable: {error.strerror}. "
                f"Received: {str(self.path)!r}."
            ) from error
        try:
            self._hold()
        except UserError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Closing releases the lock, and so does any end of the process.
        if self._handle is not None:
            os.close(self._handle)
        self._handle = None

    def _hold(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, 200, 0).decode(errors="replace").strip()
            holder = f", {holder}" if holder else ""
            raise UserError(
                f"Another process is writing this run{holder}. Received: {str(self.path)!r}."
            ) from error
        with contextlib.suppress(OSError):  # on a full disk, which later writes report
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        if not self._resume:
            require_new(self.path, self._allowed)
        remove_unfinished(self.path)
