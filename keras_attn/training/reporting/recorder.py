"""Records of a run: metrics.csv, timings.csv, samples.json and TensorBoard events."""

import csv
import io
import json
import resource
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_attn.files import write_text
from keras_attn.reading import read_table
from keras_attn.training.reporting.run_folder import RunFolder
from keras_attn.training.state import TrainingState
from keras_attn.validation import UserError

_FIRST_COLUMNS = ("step", "epoch", "loss", "nll", "accuracy", "gradient_norm", "learning_rate")
_SHOWN_TIMINGS = ("target_tokens_per_second", "padding_share", "memory_mb")
_TIMING_COLUMNS = ("step", "epoch", "seconds", "target_tokens", *_SHOWN_TIMINGS)


class Recorder:
    """Writes the rows of a run.

    Files and TensorBoard events are rewritten from the state, so that a resumed run continues from
    its checkpoint, whatever was written later. Only timings.csv, which no checkpoint holds, is read
    again, for the rows of the state.

    Args:
        folder: The run's folder.
        state: The state of the run, from the checkpoint if it is resumed.
    """

    def __init__(self, folder: RunFolder, state: TrainingState) -> None:
        self._folder = folder
        self._seconds, self._tokens = state.seconds, state.target_tokens
        shutil.rmtree(folder.tensorboard, ignore_errors=True)
        self._writer = tf.summary.create_file_writer(str(folder.tensorboard))
        self._timings = _timings_of(folder, {row["step"] for row in state.history})
        self._write_metrics(state.history)
        self._write_timings()
        for row in state.history:
            self._write_scalars(row)
        for row in self._timings:
            self._write_timing_scalars(row)
        self._write_samples(state.samples)
        for sample in state.samples:
            self._write_texts(sample)

    def row(self, history: list[dict[str, float]]) -> None:
        """Writes the last row of `history`."""
        self._write_metrics(history)
        self._write_scalars(history[-1])

    def samples(self, samples: list[dict[str, Any]]) -> None:
        """Writes the last of `samples`, as `TrainingState` has them."""
        self._write_samples(samples)
        self._write_texts(samples[-1])

    def timing(
        self, step: int, epoch: int, seconds: float, target_tokens: float, padding_share: float
    ) -> None:
        """Adds a row to timings.csv, with the speed since the last one.

        Args:
            step: Updates made.
            epoch: Epoch in progress, from 1.
            seconds: Training time so far, over all resumed parts.
            target_tokens: Target tokens so far.
            padding_share: Fraction of padding in the epoch's batches, 0 to 1.
        """
        speed = (target_tokens - self._tokens) / max(seconds - self._seconds, 1e-9)
        self._seconds, self._tokens = seconds, target_tokens
        values = (
            *(step, epoch, f"{seconds:.3f}", int(target_tokens)),
            *(f"{speed:.1f}", f"{padding_share:.4f}", f"{_peak_memory():.0f}"),
        )
        self._timings.append(dict(zip(_TIMING_COLUMNS, values, strict=True)))
        self._write_timings()
        self._write_timing_scalars(self._timings[-1])

    def close(self) -> None:
        """Flushes everything."""
        self._writer.close()

    def _write_metrics(self, history: list[dict[str, float]]) -> None:
        found = dict.fromkeys(name for row in history for name in row)
        firsts = [name for name in _FIRST_COLUMNS if not history or name in found]
        columns = list(dict.fromkeys([*firsts, *found]))
        write_table(self._folder.metrics, columns, history)

    def _write_timings(self) -> None:
        write_table(self._folder.timings, _TIMING_COLUMNS, self._timings)

    def _write_samples(self, samples: list[dict[str, Any]]) -> None:
        if samples:
            text = json.dumps(samples, ensure_ascii=False, indent=1)
            write_text(self._folder.samples, text + "\n")

    def _write_scalars(self, row: dict[str, float]) -> None:
        with self._writer.as_default(step=int(row["step"])):
            for name, value in row.items():
                if name != "step":
                    tf.summary.scalar(name, value)
        self._writer.flush()

    def _write_timing_scalars(self, row: dict[str, Any]) -> None:
        self._write_scalars({name: float(row[name]) for name in ("step", *_SHOWN_TIMINGS)})

    def _write_texts(self, sample: dict[str, Any]) -> None:
        lines = ["| source | reference | prediction |", "|---|---|---|"]
        for texts in sample["texts"]:
            cells = [" ".join(text.split()).replace("|", "\\|") for text in texts]
            lines.append(f"| {' | '.join(cells)} |")
        with self._writer.as_default(step=sample["step"]):
            tf.summary.text("samples", "\n".join(lines))
        self._writer.flush()


def validations(path: Path) -> int:
    """Counts the rows of a metrics.csv that have values of a validation, 0 without a file."""
    try:
        rows = read_table(path)
    except UserError:
        return 0
    return sum(any(row[name] for name in row if str(name).startswith("val_")) for row in rows)


class SilentRecorder:
    """Has the methods of `Recorder` and writes nothing: one of several workers writes."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class Stopwatch:
    """Seconds of training, with those of earlier parts of the run.

    Args:
        seconds: Seconds that the checkpoint had counted.
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


def _timings_of(folder: RunFolder, steps: set[float]) -> list[dict[str, Any]]:
    """The rows of timings.csv after these steps; of several after the same one, the last."""
    if not folder.timings.is_file():
        return []
    rows = {int(row["step"]): row for row in read_table(folder.timings)}
    return [row for step, row in rows.items() if step in steps]


def write_table(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Writes a CSV file; values that a row lacks are left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _peak_memory() -> float:
    """The peak memory so far, in megabytes: of the GPUs, or else of the process."""
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        names = [gpu.name.removeprefix("/device:") for gpu in gpus]
        return sum(tf.config.experimental.get_memory_info(name)["peak"] for name in names) / 1e6
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * 1024 / 1e6
