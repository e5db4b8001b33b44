"""Weights of a run on disk: checkpoints, the best weights, and the task folder."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attn.documents import read_json
from keras_attn.files import replaced_folder, write_text
from keras_attn.training.loop.checkpoints import (
    BEST_FOLDER,
    Checkpoints,
    assign_model_arrays,
    average_checkpoints,
    model_arrays,
    optimizer_arrays,
    read_checkpoint,
    write_checkpoint,
)
from keras_attn.training.reporting.recorder import Stopwatch
from keras_attn.training.reporting.run_folder import RunFolder
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState, better
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class TrainingResult:
    """Result of a finished run.

    Attributes:
        step: Updates made.
        kept: Which weights the task folder and the model now have: `"best"`, `"average"` or
            `"last"`.
        metric: Name of the metric that chose, or `None` without validation.
        value: Its value for the kept weights, or `None`.
        best_step: Step of the best validation, or `None`.
        best_value: Value of the best weights, or `None`; measured at the end if that uses more
            texts (see `ValidationSet`), otherwise at their validation.
        average_value: Value of the averaged weights at the end, or `None`.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> task = CausalLMTask(model, tokenizer)
        >>> examples = TextExamples.from_texts(["cab", "abba", "baa"], tokenizer)
        >>> Trainer(task, TrainingSettings(steps=2), "runs/demo").fit(examples)
        Done after 2 steps: kept last.
        TrainingResult(step=2, kept='last', ...)
    """

    step: int
    kept: str
    metric: str | None = None
    value: float | None = None
    best_step: int | None = None
    best_value: float | None = None
    average_value: float | None = None


@dataclass
class RunWeights:
    """Writes the weights of a run to its folder, and reads them back at the end.

    Attributes:
        task: The task that is trained.
        optimizer: Its optimizer.
        settings: The settings of the run.
        state: Its state.
        folder: Its folder.
        checkpoints: Its checkpoints.
        stopwatch: Its time.
        workers: The workers; only the chief writes.
    """

    task: Any
    optimizer: keras.optimizers.Optimizer
    settings: TrainingSettings
    state: TrainingState
    folder: RunFolder
    checkpoints: Checkpoints
    stopwatch: Stopwatch
    workers: Workers

    def __post_init__(self) -> None:
        self._saved_step = self.state.step if self.checkpoints.folders() else -1
        self._saved_at = time.monotonic()

    @property
    def checkpoint_is_due(self) -> bool:
        """Whether the clock asks for a checkpoint."""
        return 0 < self.settings.checkpoint_minutes <= (time.monotonic() - self._saved_at) / 60

    def save_checkpoint(self, milestone: bool) -> None:
        """Writes a checkpoint of this step, if there is none yet.

        Args:
            milestone: Whether it is one of a validation, which replaces another of the step.
        """
        if self._saved_step == self.state.step and not milestone:
            return
        self.state.seconds = self.stopwatch.total
        if self.workers.is_chief:
            arrays = {**model_arrays(self.task.backbone), **optimizer_arrays(self.optimizer)}
            self.checkpoints.write(self.state.step, arrays, self.state.to_dict(), milestone)
        self._saved_step = self.state.step
        self._saved_at = time.monotonic()

    def save_best(self) -> None:
        """Writes the weights as the best ones so far, and the task with them."""
        if self.workers.is_chief:
            state = {"step": self.state.step, "metric": self.settings.metric}
            state["value"] = self.state.best_value
            write_checkpoint(self._best_folder, model_arrays(self.task.backbone), state)
            self._save_task()

    def confirm(self) -> TrainingResult | None:
        """Gives the model the weights of a finished run, if its folder is sound.

        Returns:
            What the folder says of them; `None` where it is not sound.
        """
        result, arrays = None, self._of_task_folder()
        with contextlib.suppress(OSError, ValueError, TypeError):
            result = TrainingResult(**read_json(self.folder.summary))
        sound = arrays is not None and result is not None and result.step == self.state.step
        if not self.workers.all(sound):
            return None
        if result.best_value is not None:
            try:
                read_checkpoint(self._best_folder)
            except UserError as error:
                self.checkpoints.say(f"{error} The model in {self.folder.task} is kept as it is.")
        assign_model_arrays(self.task.backbone, arrays)
        return result

    def choose(
        self, measure: Callable[[str], float | None] | None, measures_all: bool, goal: str
    ) -> TrainingResult:
        """Gives the model the best or the averaged weights, and writes the task.

        Without either the model keeps the last weights.

        Args:
            measure: Validates the model with the weights of a name, or `None` without validation.
            measures_all: Whether to measure the best weights again, besides the averaged ones.
            goal: `"min"` or `"max"`.

        Returns:
            The result of the run.
        """
        state, model = self.state, self.task.backbone
        candidates = {"best": self._best(), "average": self._average()}
        candidates = {name: arrays for name, arrays in candidates.items() if arrays is not None}
        values = {"best": state.best_value} if "best" in candidates else {}
        if measure is not None and "average" in candidates:
            for name in candidates if measures_all else ["average"]:
                assign_model_arrays(model, candidates[name])
                values[name] = measure(name)
        kept = next(iter(candidates), "last")
        if len(candidates) > 1 and better(values["average"], values["best"], goal):
            kept = "average"
        if candidates:
            assign_model_arrays(model, candidates[kept])
        else:
            self.optimizer.finalize_variable_values(model.trainable_variables)
        result = TrainingResult(
            step=state.step,
            kept=kept,
            metric=None if measure is None else self.settings.metric,
            value=values.get(kept),
            best_step=state.best_step if state.best_value is not None else None,
            best_value=values.get("best", state.best_value),
            average_value=values.get("average"),
        )
        if self.workers.is_chief:
            self._save_task()
            write_text(self.folder.summary, json.dumps(asdict(result), indent=1) + "\n")
        return result

    def _best(self) -> Arrays | None:
        """The best weights, or else those of the task folder; `None` without any."""
        if self.state.best_value is None:
            return None
        try:
            arrays, _ = read_checkpoint(self._best_folder)
        except UserError as error:
            arrays = self._of_task_folder()
            others = "other weights" if arrays is None else f"those of {self.folder.task}"
            self.checkpoints.say(f"{error} Keeping {others} instead.")
        return arrays if self.workers.all(arrays is not None) else None

    def _average(self) -> Arrays | None:
        """The mean of the last milestones; `None` where fewer than two are averaged."""
        wanted = self.settings.average_last
        folders = self.checkpoints.milestones()[-wanted:] if wanted > 1 else []
        return average_checkpoints(folders) if len(folders) > 1 else None

    @property
    def _best_folder(self) -> Path:
        return self.checkpoints.folder / BEST_FOLDER

    def _save_task(self) -> None:
        with replaced_folder(self.folder.task) as temporary:
            self.task.save(temporary)

    def _of_task_folder(self) -> Arrays | None:
        """The weights in the task folder, `None` without a sound one."""
        try:
            task = type(self.task).load(self.folder.task, dtype=self.settings.precision)
        except (AttributeError, OSError, ValueError):
            return None
        return model_arrays(task.backbone)
