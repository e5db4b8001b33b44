"""The folder of a run: its lock, its files, its settings and its tokenizers."""

import contextlib
import fcntl
import os
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import keras

from keras_attn.files import LOCK_FILE, remove_unfinished
from keras_attn.tokenizers import Tokenizer, load_tokenizer
from keras_attn.tokenizers.base import CONFIG_FILE
from keras_attn.training.run_settings import RUN_FILE, RunSettings, flat
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError

# Names that the folder may hold before training starts.
TOKENIZERS_FOLDER = "tokenizers"
HELD_OUT_FILE = "held_out.json"
CACHE_FOLDER = "cache"
TEACHERS_FOLDER = "teachers"
ANSWERS_FOLDER = "answers"
PREPARED = (
    *(RUN_FILE, TOKENIZERS_FOLDER, CACHE_FOLDER, HELD_OUT_FILE),
    *(TEACHERS_FOLDER, ANSWERS_FOLDER, "data", "start"),
)
CHECKPOINTS_FOLDER = "checkpoints"
SUMMARY_FILE = "summary.json"

TokenizerMaker = Callable[[], dict[str, Tokenizer]]


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
            "The output folder must be empty, or the run in it resumed (`resume=True`, "
            f"`--resume`). Received: {str(path)!r}, which holds {', '.join(others[:3])}."
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
        allowed: Collection[str] = PREPARED,
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
            self._handle = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
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


class RunFile(keras.callbacks.Callback):
    """Writes run.yaml when training begins with its settings, and not before.

    A resumed run writes it at the beginning of its first epoch: settings that do not fit it leave
    the file as it is, and so does a finished run.

    Args:
        out: The run folder.
        settings: The settings of the run, complete.
        is_resumed: Whether the run is resumed.
    """

    def __init__(self, out: Path, settings: RunSettings, is_resumed: bool) -> None:
        super().__init__()
        self._path, self._settings, self._is_resumed = out / RUN_FILE, settings, is_resumed
        self._is_written = False

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Writes the file of a new run."""
        if not self._is_resumed:
            self._write()

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        """Writes the file of a resumed run."""
        self._write()

    def _write(self) -> None:
        if not self._is_written:
            self._settings.write(self._path)
            self._is_written = True

    def require_true(self, workers: Workers) -> None:
        """Raises a UserError if the file has other settings."""
        changes = []
        if workers.is_chief and not self._is_written:
            before = flat(RunSettings.read(self._path).to_dict())
            now = flat(self._settings.to_dict())
            changes = [f"{name}={now[name]!r}" for name in now if now[name] != before.get(name)]
        (is_changed,) = workers.from_chief(bool(changes))
        if is_changed:
            raise UserError(
                f"This run is finished, so new settings have no effect; {RUN_FILE} is unchanged. "
                f"Start a new run to use them. Received: {', '.join(changes)}."
            )


@dataclass
class RunTokenizers:
    """The tokenizers of a run, which its chief makes once and all workers load.

    Attributes:
        folder: Their folder in that of the run.
        roles: Their roles, in the order in which they are written.
        is_resumed: Whether the run is resumed, so that they may be there.
        workers: The workers.
    """

    folder: Path
    roles: tuple[str, ...]
    is_resumed: bool
    workers: Workers

    def __call__(self, make: TokenizerMaker) -> dict[str, Tokenizer]:
        """Makes or loads the tokenizers.

        Args:
            make: Makes them by role.
        """
        tokenizers = self._of_chief(make) if self.workers.is_chief else {}
        self.workers.barrier()
        return tokenizers or self._load()

    def _of_chief(self, make: TokenizerMaker) -> dict[str, Tokenizer]:
        if not self.roles:
            return {}
        # The last one is written last: its description shows that all are complete.
        complete = self.folder / self.roles[-1] / CONFIG_FILE
        if self.is_resumed and complete.is_file():
            return self._load()
        complete.unlink(missing_ok=True)
        tokenizers = make()
        for role in self.roles:
            tokenizers[role].save(self.folder / role)
        return tokenizers

    def _load(self) -> dict[str, Tokenizer]:
        return {role: load_tokenizer(self.folder / role) for role in self.roles}
