"""Files that a run folder gets before training: its settings and its tokenizers."""

from collections.abc import Callable
from pathlib import Path

import keras

from keras_attn.tokenizers import Tokenizer, load_tokenizer
from keras_attn.tokenizers.base import CONFIG_FILE
from keras_attn.training.resuming import flat
from keras_attn.training.run_settings import RUN_FILE, RunSettings
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError

TOKENIZERS_FOLDER = "tokenizers"
TokenizerMaker = Callable[[], dict[str, Tokenizer]]


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


class RunTokenizers:
    """The tokenizers of a run, which its chief makes once and all workers load.

    Args:
        out: The run folder.
        roles: Their roles, in the order in which they are written.
        is_resumed: Whether the run is resumed, so that they may be there.
        workers: The workers.
    """

    def __init__(
        self, out: Path, roles: tuple[str, ...], is_resumed: bool, workers: Workers
    ) -> None:
        self._folder, self._roles = out / TOKENIZERS_FOLDER, roles
        self._is_resumed, self._workers = is_resumed, workers

    def __call__(self, make: TokenizerMaker) -> dict[str, Tokenizer]:
        """Makes or loads the tokenizers.

        Args:
            make: Makes them by role.
        """
        tokenizers = self._of_chief(make) if self._workers.is_chief else {}
        self._workers.barrier()
        return tokenizers or self._load()

    def _of_chief(self, make: TokenizerMaker) -> dict[str, Tokenizer]:
        if not self._roles:
            return {}
        # The last one is written last: its description shows that all are complete.
        complete = self._folder / self._roles[-1] / CONFIG_FILE
        if self._is_resumed and complete.is_file():
            return self._load()
        complete.unlink(missing_ok=True)
        tokenizers = make()
        for role in self._roles:
            tokenizers[role].save(self._folder / role)
        return tokenizers

    def _load(self) -> dict[str, Tokenizer]:
        return {role: load_tokenizer(self._folder / role) for role in self._roles}
