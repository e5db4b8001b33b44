"""What a run writes down: metrics.csv, timings.csv and TensorBoard scalars."""

import csv
import io
import shutil
import time
from pathlib import Path

import tensorflow as tf

from keras_attn.training.run_folder import RunFolder

_FIRST_COLUMNS = (
    "step",
    "epoch",
    "loss",
    "nll",
    "accuracy",
    "gradient_norm",
    "learning_rate",
)
_TIMING_COLUMNS = ("step", "epoch", "seconds", "target_tokens", "target_tokens_per_second")


class Recorder:
    """Writes the rows of a run.

    metrics.csv and the TensorBoard scalars are those of `history` and nothing else, so that a
    resumed run goes on where its checkpoint was, whatever was written later.

    Args:
        folder: The run's folder.
        history: Rows of the checkpoint that is resumed.
    """

    def __init__(self, folder: RunFolder, history: list[dict[str, float]]) -> None:
        self._folder = folder
        shutil.rmtree(folder.tensorboard, ignore_errors=True)
        self._writer = tf.summary.create_file_writer(str(folder.tensorboard))
        self._write_metrics(history)
        for row in history:
            self._write_scalars(row)

    def row(self, history: list[dict[str, float]]) -> None:
        """Writes the last row of `history`."""
        self._write_metrics(history)
        self._write_scalars(history[-1])

    def timing(self, step: int, epoch: int, seconds: float, target_tokens: float) -> None:
        """Appends a row to timings.csv.

        Args:
            step: Updates made.
            epoch: Epoch in progress, from 1.
            seconds: Training time so far, over all resumed parts.
            target_tokens: Target tokens so far.
        """
        new = not self._folder.timings.exists()
        with self._folder.timings.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(_TIMING_COLUMNS)
            speed = target_tokens / max(seconds, 1e-9)
            writer.writerow([step, epoch, f"{seconds:.3f}", int(target_tokens), f"{speed:.1f}"])

    def close(self) -> None:
        """Flushes everything."""
        self._writer.close()

    def _write_metrics(self, history: list[dict[str, float]]) -> None:
        columns = list(dict.fromkeys([*_FIRST_COLUMNS, *(name for row in history for name in row)]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)
        _replace_file(self._folder.metrics, text.getvalue())

    def _write_scalars(self, row: dict[str, float]) -> None:
        with self._writer.as_default(step=int(row["step"])):
            for name, value in row.items():
                if name != "step":
                    tf.summary.scalar(name, value)
        self._writer.flush()


class SilentRecorder:
    """Has the methods of `Recorder` and writes nothing: one of several workers writes."""

    def row(self, history: list[dict[str, float]]) -> None:
        """Does nothing."""

    def timing(self, step: int, epoch: int, seconds: float, target_tokens: float) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class Stopwatch:
    """Seconds of training, those of earlier parts of the run included.

    Args:
        seconds: What the checkpoint had counted.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._before = seconds
        self._start = time.monotonic()

    @property
    def total(self) -> float:
        """Seconds over all parts of the run."""
        return self._before + self.here

    @property
    def here(self) -> float:
        """Seconds in this process."""
        return time.monotonic() - self._start


def _replace_file(path: Path, text: str) -> None:
    temporary = path.with_name(f".writing-{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
