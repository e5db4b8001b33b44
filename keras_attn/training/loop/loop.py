"""The loop over epochs and updates, and everything that happens between updates."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import keras
import tensorflow as tf

from keras_attn.data import padding_share
from keras_attn.files import replaced_folder
from keras_attn.training.loop.checkpoints import (
    Checkpoints,
    model_arrays,
    optimizer_arrays,
    write_checkpoint,
)
from keras_attn.training.loop.interruption import SignalWatch, StopValidation, TrainingInterrupted
from keras_attn.training.loop.optimizer import averaged_weights
from keras_attn.training.loop.schedules import PlannedCosine
from keras_attn.training.loop.step import UPDATE_VALUES, TrainingStep
from keras_attn.training.loop.time_plan import TimePlan
from keras_attn.training.loop.validation_set import Validator
from keras_attn.training.reporting.diagnosis import first_failure
from keras_attn.training.reporting.progress import ProgressReport
from keras_attn.training.reporting.recorder import Recorder, Stopwatch
from keras_attn.training.reporting.run_folder import RunFolder
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState, means, zero_sums
from keras_attn.training.workers.feed import distributed_batches
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError

BEST_FOLDER = "best"
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass
class TrainingLoop:
    """One run in progress; its parts are made by `Trainer`.

    `confirms` tells that an earlier part of the run had the same settings, so that there may be
    nothing left to do.
    """

    task: Any
    settings: TrainingSettings
    goal: str
    examples: Any
    loss: Callable
    plan: Callable
    strategy: tf.distribute.Strategy
    workers: Workers
    schedule: keras.optimizers.schedules.LearningRateSchedule
    optimizer: keras.optimizers.Optimizer
    train_step: TrainingStep
    validator: Validator | None
    callbacks: Sequence[keras.callbacks.Callback]
    folder: RunFolder
    checkpoints: Checkpoints
    state: TrainingState
    recorder: Recorder
    progress: ProgressReport
    signals: SignalWatch
    confirms: bool = False
    _pending: list = field(default_factory=list)
    _tokens_to_show: float = 0.0
    _padding_share: float = 0.0
    # What the workers agreed on last.
    _signal: int | None = None
    _stopped: bool = False
    _time_is_up: bool = False
    _checkpoint_is_due: bool = False
    _last_step: float = math.inf  # that fits into the time

    def __post_init__(self) -> None:
        self._model = self.task.backbone
        self._model.stop_training = False
        self._stopwatch = Stopwatch(self.state.seconds)
        self._first = (self.state.step, self.state.validated_step)
        self._planner = None
        if isinstance(self.schedule, PlannedCosine):
            self._planner = TimePlan(60 * self.settings.max_minutes, self.state)
        self._last_look = self._last_saved = time.monotonic()
        self._saved_step = self.state.step if self.checkpoints.folders() else -1
        self._watched = any(_watches_batches(callback) for callback in self.callbacks)
        self._callbacks = keras.callbacks.CallbackList(
            self.callbacks, model=self._model, epochs=self.settings.epochs, verbose=0
        )

    def run(self) -> None:
        """Trains until the settings, a callback, a signal or the clock ends it."""
        self._callbacks.on_train_begin()
        self._agree()
        if self._validation_due() and self.state.validated_step != self.state.step:
            self._milestone()  # an earlier part of the run ended just before it
        while not self._finished():
            self._epoch()
        self._callbacks.on_train_end(dict(self.state.validation))

    @property
    def has_done_nothing(self) -> bool:
        """Whether an earlier part of the run had done everything."""
        return self.confirms and self._first == (self.state.step, self.state.validated_step)

    def close(self) -> None:
        """Gives back what the loop holds."""
        self.progress.close()
        self.recorder.close()

    def measure(self, what: str, final: bool = False) -> float | None:
        """Validates the model as it is, tells it, and returns the metric that chooses, if there."""
        self.progress.pause()
        # Several workers hear of a signal when they next agree.
        self.signals.in_validation = self.workers.workers == 1
        try:
            if self.signals.in_validation and self.signals.received is not None:
                raise StopValidation
            self._callbacks.on_test_begin()
            own = self.validator.measure(final)
            values = dict(zip(own, self.workers.from_chief(*own.values()), strict=True))
        finally:
            self.signals.in_validation = False
        self.state.validation = {f"val_{name}": value for name, value in values.items()}
        self._callbacks.on_test_end(dict(self.state.validation))
        shown = " ".join(f"{name} {value:.4f}" for name, value in self.state.validation.items())
        self.progress.say(f"{what}: {shown}")
        self.progress.resume()
        return values.get(self.settings.metric.removeprefix("val_"))

    def _epoch(self) -> None:
        state = self.state
        plan = self.plan(state.epoch)
        self._padding_share = padding_share(self.examples, plan)["total"]
        self._callbacks.on_epoch_begin(state.epoch)
        examples = self.examples.of_epoch(state.epoch)
        batches = distributed_batches(self.strategy, examples, plan, skip=state.batch)
        while state.batch < len(plan) and not self._enough():
            index = math.ceil(state.batch / self.settings.accumulate_steps)
            self._callbacks.on_train_batch_begin(index)
            group = list(itertools.islice(batches, self.settings.accumulate_steps))
            origin = (examples, plan, state.batch, len(group))
            self._pending.append((self.train_step(group), *origin))
            state.step += 1
            state.batch += len(group)
            self._after_update(index, last=state.batch >= len(plan))
        self._after_epoch(complete=state.batch >= len(plan))

    def _after_update(self, index: int, last: bool) -> None:
        settings, state = self.settings, self.state
        if self._watched:
            self._drain()
            self._callbacks.on_train_batch_end(index, means(state.epoch_sums))
        if time.monotonic() - self._last_look >= _SECONDS_BETWEEN_LOOKS:
            self._look()
        if self._validation_due():
            self._milestone()
        elif settings.log_every and state.step % settings.log_every == 0 and not last:
            self._row({})
        if state.step % self.workers.steps_between == 0:
            self._agree()
        every = settings.checkpoint_every
        if self._checkpoint_is_due or (every and state.step % every == 0):
            self._checkpoint(milestone=False)
        if self._signal is not None:
            self._interrupt()

    def _after_epoch(self, complete: bool) -> None:
        """Closes an epoch, whole or ended early."""
        settings, state = self.settings, self.state
        ending = self._enough() or (complete and state.epoch + 1 == settings.epochs)
        self._row(self._validate() if ending or not settings.validate_every else {})
        logs = {**means(state.epoch_sums), **state.validation}
        logs["learning_rate"] = self._learning_rate()
        epoch = state.epoch
        if complete:
            state.epoch, state.batch = epoch + 1, 0
            state.epoch_sums = zero_sums()
        self._callbacks.on_epoch_end(epoch, logs)
        if ending or not settings.validate_every:
            self._checkpoint(milestone=True)
        self._agree()
        if self._signal is not None:
            self._interrupt()

    def _agree(self) -> None:
        """Asks all workers for what only their signals, callbacks and the chief's clock know."""
        settings = self.settings
        since_saved = (time.monotonic() - self._last_saved) / 60
        limit = settings.max_minutes
        told = self.workers.gather(
            [
                self._planner.plan(self.state, self._stopwatch.here) if self._planner else 0,
                self.signals.received or 0,
                bool(self._model.stop_training),
                # An update a start at least, so that a run that is out of time can go on.
                limit is not None
                and self.state.step > self._first[0]
                and self._stopwatch.here / 60 >= limit,
                0 < settings.checkpoint_minutes <= since_saved,
            ]
        )
        self._signal = int(told[:, 1].max()) or None
        self._stopped = bool(told[:, 2].any())
        self._time_is_up, self._checkpoint_is_due = map(bool, told[0, 3:])
        if told[0, 0]:
            self._last_step = int(told[0, 0])
            self.schedule.plan(self._last_step)

    def _validation_due(self) -> bool:
        every, step = self.settings.validate_every, self.state.step
        return every > 0 and step > 0 and step % every == 0

    def _milestone(self) -> None:
        """A validation within an epoch, its row and its checkpoint."""
        self._row(self._validate())
        self._checkpoint(milestone=True)

    def _validate(self) -> dict[str, float]:
        """Validates unless this step was; returns the values by column."""
        state = self.state
        if self.validator is None or state.validated_step == state.step:
            return {}
        self._look()
        try:
            with averaged_weights(self.optimizer, self._model.trainable_variables):
                value = self.measure(f"epoch {state.epoch + 1} step {state.step} {self._shown()}")
                self._sample()
                if value is not None and state.judge(value, self.goal):
                    self._save_best()
        except StopValidation:
            self._interrupt()
        if value is None:
            self._checkpoint(milestone=False)
            names = ", ".join(name.removeprefix("val_") for name in state.validation)
            raise UserError(
                f"`metric` must be one of the validation's values {names}. "
                f"Received: metric={self.settings.metric!r}."
            )
        state.validated_step = state.step
        return dict(state.validation)

    def _sample(self) -> None:
        """Notes what the model makes of a few texts."""
        texts = self.validator.samples() if self.workers.is_chief else []
        if texts:
            self.state.samples.append({"step": self.state.step, "texts": list(map(list, texts))})
            self.recorder.samples(self.state.samples)

    def _save_best(self) -> None:
        if not self.workers.is_chief:
            return
        state = {"step": self.state.step, "metric": self.settings.metric}
        state["value"] = self.state.best_value
        folder = self.checkpoints.folder / BEST_FOLDER
        write_checkpoint(folder, model_arrays(self._model), state)
        with replaced_folder(self.folder.task) as temporary:
            self.task.save(temporary)

    def _row(self, validation: dict[str, float]) -> None:
        """Writes a row of metrics.csv; what a step's row lacks is added to it."""
        self._drain()
        state = self.state
        if state.history and state.history[-1]["step"] == state.step:
            if validation:
                state.history[-1] |= validation
                self.recorder.row(state.history)
            return
        row = {"step": state.step, "epoch": state.epoch + 1, **state.end_row()}
        row["learning_rate"] = self._learning_rate()
        state.history.append({**row, **validation})
        self.recorder.row(state.history)
        self.recorder.timing(
            state.step,
            state.epoch + 1,
            self._stopwatch.total,
            state.target_tokens,
            self._padding_share,
        )

    def _checkpoint(self, milestone: bool) -> None:
        """Writes a checkpoint; only a milestone takes the place of one of the same step."""
        self._checkpoint_is_due = False
        if self._saved_step == self.state.step and not milestone:
            return
        self._drain()
        self.state.seconds = self._stopwatch.total
        if self.workers.is_chief:
            arrays = {**model_arrays(self._model), **optimizer_arrays(self.optimizer)}
            self.checkpoints.write(self.state.step, arrays, self.state.to_dict(), milestone)
        self._saved_step = self.state.step
        self._last_saved = time.monotonic()

    def _interrupt(self) -> NoReturn:
        self._checkpoint(milestone=False)
        self.workers.barrier()
        self.progress.say(
            f"Interrupted at step {self.state.step}, checkpoint written. "
            "Run the same command with --resume to go on."
        )
        raise TrainingInterrupted(self._signal or self.signals.received)

    def _look(self) -> None:
        """Brings the progress report up to date."""
        self._drain()
        self._last_look = time.monotonic()
        loss = means(self.state.epoch_sums)["loss"]
        self.progress.update(self.state.step, self.state.epoch + 1, loss, self._tokens_to_show)
        self._tokens_to_show = 0.0

    def _drain(self) -> None:
        """Fetches the sums of the updates since the last time (waiting for the device)."""
        for tensor, *origin in self._pending:
            values = dict(zip(UPDATE_VALUES, map(float, tensor.numpy()), strict=True))
            loss, norm = values["loss"], values["gradient_norm"]
            if math.isfinite(loss) and math.isfinite(norm):
                self.state.add(values)
            elif self.settings.precision != "mixed_float16":  # loss scaling skips such updates
                self._stop_where_it_failed(loss, norm, *origin)
            self._tokens_to_show += values["tokens"]
        self._pending = []

    def _stop_where_it_failed(
        self, loss: float, norm: float, examples: Any, plan: Any, begin: int, count: int
    ) -> NoReturn:
        """Tells which batch and which layer gave a loss or a gradient that is no number."""
        batches = [examples.assemble(plan[begin + number]) for number in range(count)]
        findings = [first_failure(self._model, self.loss, *batch) for batch in batches]
        found = next(
            filter(None, findings), "The same batch with other dropout is as it should be."
        )
        raise UserError(
            f"The loss is no longer a number in batch {begin + 1:,} of epoch "
            f"{self.state.epoch + 1}. {found} A lower `learning_rate` or more `warmup_steps` may "
            f"help. Received: loss={loss}, gradient_norm={norm}."
        )

    def _learning_rate(self) -> float:
        """The rate of the last update."""
        last = max(int(self.optimizer.iterations.numpy()) - 1, 0)
        return float(self.schedule(last))

    def _shown(self) -> str:
        values = means(self.state.epoch_sums)
        return f"loss {values['loss']:.4f} accuracy {values['accuracy']:.4f}"

    def _enough(self) -> bool:
        """Whether no further update is to be made."""
        settings, state = self.settings, self.state
        return (
            self._stopped
            or self._time_is_up
            or state.step >= self._last_step
            or (settings.steps is not None and state.step >= settings.steps)
            or (0 < settings.patience <= state.waiting)
        )

    def _finished(self) -> bool:
        epochs = self.settings.epochs
        return self._enough() or (epochs is not None and self.state.epoch >= epochs)


def _watches_batches(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback overrides what is called after batches, as its own attribute or not."""
    base = keras.callbacks.Callback
    return any(
        getattr(getattr(callback, name), "__func__", None) is not getattr(base, name)
        for name in ("on_train_batch_end", "on_batch_end")
    )
