"""Base class of exported tasks: a loaded SavedModel and calls of its signatures."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.documents import read_json_object
from keras_attn.task_folders import EXPORTED_TASK, TASK_FILE
from keras_attn.tasks.base import Task
from keras_attn.tasks.hypothesis import in_batches, length_sorted_batches
from keras_attn.tasks.operations import perform
from keras_attn.tasks.texts import shortened
from keras_attn.validation import UserError, asserted, require


class Exported:
    """An exported SavedModel with the prediction methods of its task.

    Args:
        folder: The version folder.
        model: The loaded SavedModel.

    Raises:
        UserError: The SavedModel is an export of another task.
    """

    kind: ClassVar[str]
    """Name of the task, as in the export's manifest."""

    classes: ClassVar[dict[str, type["Exported"]]] = {}

    needs: ClassVar[frozenset[str]] = frozenset()
    """Names of required signatures."""

    _frame: ClassVar[int] = 1
    """Number of special tokens around a text."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        Exported.classes[cls.kind] = cls

    def __init__(self, folder: Path, model: Any):
        require_signatures(folder, model, self.needs)
        self.folder = folder
        self._model = model

    def count_truncated(self, texts: Sequence[Any]) -> int:
        """Counts the texts that are longer than the task reads (see `Task.count_truncated`)."""
        return self._truncating.count_truncated(texts) if self._truncating else 0

    @property
    def pairs(self) -> bool:
        """Whether an input may be two texts with a tab between them, or one."""
        path = self.folder / EXPORTED_TASK / TASK_FILE
        return path.is_file() and read_json_object(path).get("pairs") is True

    @functools.cached_property
    def _truncating(self) -> Task | None:
        """The task that was exported, if it reads the beginning of longer texts."""
        described = self.folder / EXPORTED_TASK
        if not (described / TASK_FILE).is_file():
            return None
        truncates = read_json_object(described / TASK_FILE).get("truncate") is True
        return Task.load(described) if truncates else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def _in_batches(
        self,
        signature: str,
        columns: Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]],
        progress: Callable[[int], None] | None = None,
        **inputs: Sequence,
    ) -> list[tuple]:
        """Calls a signature for batches of similar lengths (see `in_batches`)."""

        def predict(*batch: list) -> Sequence[np.ndarray]:
            named = dict(zip(inputs, batch, strict=True))
            return columns(run_signature(self._model.signatures[signature], **named))

        batches = self._batches(next(iter(inputs.values())))
        return in_batches(batches, predict, *inputs.values(), progress=progress)

    def _batches(self, inputs: Sequence[Any]) -> list[list[int]]:
        """For each batch the positions of its inputs."""
        lengths = [len(text) + self._frame for text in inputs]
        return length_sorted_batches(lengths, budget=4096)

    def evaluate(
        self,
        data: Any,
        metrics: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | Mapping[str, str | int] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Evaluates the exported task (see `Task.evaluate`)."""
        return perform("evaluate", self, data, metrics, columns, **options)


def require_signatures(folder: Path, model: Any, names: frozenset[str]) -> None:
    """Raises a `UserError` unless a SavedModel has some signatures."""
    missing = names - set(model.signatures)
    require(
        not missing,
        "The SavedModel must be an exported task.",
        folder=str(folder),
        missing_signatures=sorted(missing),
    )


def check_exported(n_best: int, column: np.ndarray) -> None:
    """Raises a `UserError` if more answers are requested than a signature returns."""
    require(
        n_best <= column.shape[1],
        "`n_best` must not exceed the `n_best` of the export.",
        n_best=n_best,
        exported=column.shape[1],
    )


def run_signature(signature: Any, **inputs: list) -> dict[str, np.ndarray]:
    """Calls a signature.

    Args:
        signature: A signature of a loaded SavedModel.
        **inputs: A list for each input, one value a row.

    Returns:
        The outputs by name.

    Raises:
        UserError: The model rejects a row, which the message shows.
    """
    specs = signature.structured_input_signature[1]
    try:
        outputs = signature(
            **{name: tf.constant(values, specs[name].dtype) for name, values in inputs.items()}
        )
    except tf.errors.InvalidArgumentError as error:
        rows = len(next(iter(inputs.values())))
        if rows > 1:  # find the rejected row
            for row in range(rows):
                run_signature(signature, **{name: [values[row]] for name, values in inputs.items()})
        line = asserted(str(error))
        line += " tokens" if re.search(r" tokens. Received: \d+$", line) else ""
        texts = [values[0] for values in inputs.values() if isinstance(values[0], str)]
        shown = ", ".join(repr(shortened(text)) for text in texts)
        shown = f" in {shown}" if rows == 1 and shown else ""
        raise UserError(f"{line}{shown}.") from error
    return {name: value.numpy() for name, value in outputs.items()}
