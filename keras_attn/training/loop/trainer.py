"""The training loop: epochs, updates, and what happens between updates."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import keras
import tensorflow as tf
from rich.console import Console

from keras_attn.data import Examples
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.training.loop.checkpoints import (
    Checkpoints,
    assign_model_arrays,
    assign_optimizer_arrays,
)
from keras_attn.training.loop.ending import (
    Ending,
    SignalWatch,
    StopValidation,
    TrainingInterrupted,
)
from keras_attn.training.loop.freezing import frozen
from keras_attn.training.loop.optimizer import averaged_weights, make_optimizer
from keras_attn.training.loop.plans import EpochPlans
from keras_attn.training.loop.restoring import newest_checkpoint, restored_state, resuming_line
from keras_attn.training.loop.run_weights import RunWeights, TrainingResult
from keras_attn.training.loop.schedules import planned, schedule_of
from keras_attn.training.loop.step import TrainingStep
from keras_attn.training.loop.teaching import Teaching
from keras_attn.training.loop.updates import Updates
from keras_attn.training.loop.validation_set import ValidationSet, Validator, require_examples
from keras_attn.training.reporting.diagnosis import why_exhausted
from keras_attn.training.reporting.progress import QUIET, ProgressReport, say
from keras_attn.training.reporting.recorder import Recorder, SilentRecorder, Stopwatch
from keras_attn.training.reporting.run_folder import RunFolder
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import (
    LOSS_VALUES,
    TrainingState,
    means,
    metric_goal,
    named,
    zero_sums,
)
from keras_attn.training.workers.strategy import (
    check_strategy,
    compiles_whole_updates,
    distributed_batches,
    strategy_of,
)
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError, require

_SECONDS_BETWEEN_LOOKS = 0.5
_SHOWN = ("loss", "accuracy")


class Trainer:
    """Trains a task's backbone and writes a run folder.

    The same settings, data, machine and model give the same metrics.csv to the bit; a run that was
    killed and resumed gives it as well.

    Args:
        task: Has `backbone`, a built `keras.Model` from a batch's inputs to logits (rows, length,
            vocabulary), and `save(folder)`. It may have `loss(labels, outputs, label_smoothing)`
            that returns four sums as `token_cross_entropy` does. For several devices the backbone
            must have been built inside `make_strategy(settings.strategy).scope()`.
        settings: The settings of the training.
        out_folder: The run folder: empty (but for run.yaml), or resumed.
        callbacks: Keras callbacks; their own state is not part of checkpoints.
        schedule: A Keras learning-rate schedule instead of the settings' one.
        teaching: Soft targets of teachers, for distillation.

    Raises:
        UserError: The settings ask for another strategy than the model was built under.

    Examples:
        >>> texts, tokenizer = ["cab", "abba", "baa"], CharacterTokenizer("abc")
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> task = CausalLMTask(model, tokenizer)
        >>> trainer = Trainer(task, TrainingSettings(epochs=2, batch_tokens=16), "runs/demo")
        >>> examples = TextExamples.from_texts(texts, tokenizer)
        >>> trainer.fit(examples, ValidationSet(examples)).kept
        epoch 1 step 1 loss ...
        epoch 2 step 2 loss ...
        Done after 2 steps: kept best, of step 2, loss ...
        'best'
    """

    def __init__(
        self,
        task: Any,
        settings: TrainingSettings,
        out_folder: str | Path,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
        teaching: Teaching | None = None,
    ) -> None:
        self.task = task
        self.settings = settings
        self.out_folder = Path(out_folder)
        self._given_callbacks = list(callbacks)
        self._given_schedule = schedule
        self._teaching = teaching
        self._model = task.backbone
        self._loss = getattr(task, "loss", None) or token_cross_entropy
        self._loss_values = getattr(task, "loss_values", LOSS_VALUES)
        self._strategy = strategy_of(self._model)
        check_strategy(settings.strategy, self._strategy)
        self._plans: EpochPlans | None = None
        self._goal = metric_goal(settings.metric, settings.metric_goal)
        self._workers = Workers(self._strategy)
        self._console = Console(highlight=False) if self._workers.is_chief else QUIET
        self._say = partial(say, console=self._console)

    def plans(self, examples: Examples) -> EpochPlans:
        """The batches of each epoch of examples.

        Args:
            examples: Tokenized examples.

        Returns:
            The plans; asked again for the same examples, the same object, which `fit` uses too.
        """
        if self._plans is None or self._plans.examples is not examples:
            self._plans = EpochPlans(examples, self.settings, self._strategy)
        return self._plans

    def fit(
        self,
        train_examples: Examples,
        validation: ValidationSet | Callable[[], dict[str, float]] | None = None,
        resume: bool = False,
    ) -> TrainingResult:
        """Trains until the settings end the run, and writes the task folder.

        Args:
            train_examples: Tokenized examples, as `keras_attn.data` batches them.
            validation: The data that choose the best weights: a `ValidationSet`, or a callable that
                returns values by name; `None` for no validation, which keeps the last weights.
            resume: Continue from the last checkpoint in the run folder, or from the beginning if
                there is none.

        Returns:
            The result. The backbone then has the weights that were kept.

        Raises:
            UserError: `train_examples` are other data, the folder is in use or not writable, a
                checkpoint does not fit, the data changed since the checkpoint, `freeze` matches
                nothing or everything, the loss is no longer a number, or there is not enough
                memory.
            TrainingInterrupted: SIGINT or SIGTERM was received; a checkpoint was written.
        """
        require_examples(train_examples=train_examples)
        require(
            validation is None or isinstance(validation, ValidationSet) or callable(validation),
            "`validation` must be a `ValidationSet`, or a callable that returns values by name.",
            validation=type(validation).__name__,
        )
        if self.settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        run_folder = RunFolder(self.out_folder, resume, writes=self._workers.is_chief)
        freezing = frozen(self._model, self.settings.freeze)
        with freezing as frozen_line, run_folder as folder, SignalWatch() as signals:
            if frozen_line:
                self._say(frozen_line)
            self._begin(folder, signals, train_examples, validation, resume)
            try:
                self._train()
                return self._finish()
            except StopValidation:
                raise TrainingInterrupted(signals.received) from None
            except tf.errors.ResourceExhaustedError as error:
                raise UserError(why_exhausted(error, self.settings)) from error
            finally:
                self._progress.close()
                self._recorder.close()

    def _begin(
        self,
        folder: RunFolder,
        signals: SignalWatch,
        examples: Examples,
        validation: ValidationSet | Callable | None,
        resume: bool,
    ) -> None:
        """Makes the parts of a run, at its beginning or at its last checkpoint."""
        settings, model, workers = self.settings, self._model, self._workers
        self._examples, self._signals = examples, signals
        plans = self.plans(examples)
        whole_updates = compiles_whole_updates(self._strategy)
        total_steps = settings.total_steps(len(plans.of(0)[0]))
        schedule = self._given_schedule or schedule_of(
            settings, total_steps, getattr(model, "hidden_dim", None), self._say
        )
        # Loss scaling skips updates whose gradients are not finite.
        scales_loss = settings.precision == "mixed_float16"
        with self._strategy.scope():
            self._schedule = schedule if settings.max_minutes is None else planned(schedule)
            self._optimizer = make_optimizer(
                settings, self._schedule, model.trainable_variables, scales_loss
            )
        step = TrainingStep(
            *(model, self._optimizer, self._strategy, self._loss),
            settings.label_smoothing,
            settings.batch_tokens,
            jit=plans.static_shapes and not whole_updates,
            cpu_shards=max(settings.cpu_shards, 1),
            whole_updates=whole_updates,
            accumulate=settings.accumulate_steps > 1,
            clip_norm=settings.clip_norm,
            consistency=settings.consistency,
            teaching=self._teaching,
        )
        keep = max(settings.keep_checkpoints, settings.average_last)
        checkpoints = Checkpoints(folder.checkpoints, keep, self._say, workers.is_chief)
        self._state = TrainingState()
        if resume:
            self._restore(folder, checkpoints)
        self._confirms = self._state.settings == settings.to_dict()
        self._state.settings, self._state.data = settings.to_dict(), examples.checksum
        self._first = (self._state.step, self._state.validated_step)
        self._validator = None
        if validation is not None:
            self._validator = Validator(
                *(validation, model, self._strategy, self._loss, settings, whole_updates),
                self._loss_values,
            )
        self._updates = Updates(step, model, self._loss, self._state, scales_loss)
        self._recorder = Recorder(folder, self._state) if workers.is_chief else SilentRecorder()
        self._progress = ProgressReport(
            total_steps, self._state.step, self._console, settings.max_minutes
        )
        self._stopwatch = Stopwatch(self._state.seconds)
        self._ending = Ending(
            settings, self._state, self._schedule, self._stopwatch, signals, workers
        )
        self._weights = RunWeights(
            *(self.task, self._optimizer, settings, self._state),
            *(folder, checkpoints, self._stopwatch, workers),
        )
        model.stop_training = False
        self._callbacks = keras.callbacks.CallbackList(
            self._given_callbacks, model=model, epochs=settings.epochs, verbose=0
        )
        self._is_watched = any(map(_watches_batches, self._given_callbacks))
        self._last_look = time.monotonic()
        self._padding_share = 0.0

    def _restore(self, folder: RunFolder, checkpoints: Checkpoints) -> None:
        found = newest_checkpoint(folder, checkpoints, self._workers)
        if found is None:
            self._say(
                f"There is no checkpoint in {checkpoints.folder}: starting from the beginning."
            )
            return
        self._state = restored_state(found, self.settings, self._examples.checksum)
        assign_model_arrays(self._model, found.arrays)
        assign_optimizer_arrays(self._optimizer, found.arrays)
        self._say(resuming_line(found, self._state, self.settings))

    def _train(self) -> None:
        """Trains until the settings, a callback, a signal or the clock ends it."""
        self._callbacks.on_train_begin()
        self._agree()
        if self._state.step == 0 and self._start_gain is not None:
            self._write_row(self._validate())
        if self._validation_is_due and self._state.validated_step != self._state.step:
            self._milestone()  # an earlier part of the run ended just before it
        while not self._ending.is_enough:
            self._epoch()
        self._callbacks.on_train_end(dict(self._state.validation))

    def _epoch(self) -> None:
        state, count = self._state, self.settings.accumulate_steps
        plan, self._padding_share = self.plans(self._examples).of(state.epoch)
        self._callbacks.on_epoch_begin(state.epoch)
        examples = self._examples.of_epoch(state.epoch)
        batches = distributed_batches(self._strategy, examples, plan, skip=state.batch)
        while state.batch < len(plan) and not self._ending.is_enough:
            index = math.ceil(state.batch / count)
            self._callbacks.on_train_batch_begin(index)
            self._updates.make(list(itertools.islice(batches, count)), examples, plan)
            self._after_update(index, is_last=state.batch >= len(plan))
        self._after_epoch(is_complete=state.batch >= len(plan))

    def _after_update(self, index: int, is_last: bool) -> None:
        settings, step = self.settings, self._state.step
        if self._is_watched:
            self._updates.fetch()
            self._callbacks.on_train_batch_end(index, means(self._state.epoch_sums))
        if time.monotonic() - self._last_look >= _SECONDS_BETWEEN_LOOKS:
            self._look()
        if self._validation_is_due:
            self._milestone()
        elif settings.log_every and step % settings.log_every == 0 and not is_last:
            self._write_row({})
        if step % self._workers.steps_between == 0:
            self._agree()
        every = settings.checkpoint_every
        if self._checkpoint_is_due or (every and step % every == 0):
            self._save_checkpoint(milestone=False)
        if self._ending.signal is not None:
            self._interrupt()

    def _after_epoch(self, is_complete: bool) -> None:
        """Closes an epoch, whole or ended early."""
        settings, state = self.settings, self._state
        is_ending = self._ending.is_last_epoch(is_complete)
        is_milestone = is_ending or not settings.validate_every
        self._write_row(self._validate() if is_milestone else {})
        logs = {**named(means(state.epoch_sums), self._loss_values), **state.validation}
        logs["learning_rate"] = self._learning_rate
        epoch = state.epoch
        if is_complete:
            state.epoch, state.batch = epoch + 1, 0
            state.epoch_sums = zero_sums()
        self._callbacks.on_epoch_end(epoch, logs)
        if is_milestone:
            self._save_checkpoint(milestone=True)
        self._agree()
        if self._ending.signal is not None:
            self._interrupt()

    def _agree(self) -> None:
        is_stopped = bool(self._model.stop_training)
        self._checkpoint_is_due = self._ending.agree(is_stopped, self._weights.checkpoint_is_due)

    @property
    def _start_gain(self) -> float | None:
        return None if self._validator is None else self._validator.start_gain

    @property
    def _validation_is_due(self) -> bool:
        every, step = self.settings.validate_every, self._state.step
        return every > 0 and step > 0 and step % every == 0

    def _milestone(self) -> None:
        """Makes a validation within an epoch, its row and its checkpoint."""
        self._write_row(self._validate())
        self._save_checkpoint(milestone=True)

    def _validate(self) -> dict[str, float]:
        """Validates, unless this step was validated, and returns the values by column."""
        state = self._state
        if self._validator is None or state.validated_step == state.step:
            return {}
        if state.step:
            self._look()
        sums = named(means(state.epoch_sums), self._loss_values)
        shown = " ".join(f"{name} {sums[name]:.4f}" for name in _SHOWN if name in sums)
        what = f"epoch {state.epoch + 1} step {state.step} {shown}"
        try:
            with averaged_weights(self._optimizer, self._model.trainable_variables):
                value = self._measure(what if state.step else "before the first update")
                self._sample()
                if value is not None and state.judge(value, self._goal, self._start_gain or 0.0):
                    self._weights.save_best()
        except StopValidation:
            self._interrupt()
        if value is None:
            self._save_checkpoint(milestone=False)
            names = ", ".join(name.removeprefix("val_") for name in state.validation)
            raise UserError(
                f"`metric` must be one of the validation's values {names}. "
                f"Received: metric={self.settings.metric!r}."
            )
        state.validated_step = state.step
        return dict(state.validation)

    def _measure(self, what: str, final: bool = False) -> float | None:
        """Validates the model, and returns the metric that chooses, if it is among the values."""
        self._progress.pause()
        # Several workers learn of a signal when they next agree.
        self._signals.in_validation = self._workers.workers == 1
        try:
            if self._signals.in_validation and self._signals.received is not None:
                raise StopValidation
            self._callbacks.on_test_begin()
            own = self._validator.measure(final, self._progress.validating)
            values = dict(zip(own, self._workers.from_chief(*own.values()), strict=True))
        finally:
            self._signals.in_validation = False
        self._state.validation = {f"val_{name}": value for name, value in values.items()}
        self._callbacks.on_test_end(dict(self._state.validation))
        shown = " ".join(f"{name} {value:.4f}" for name, value in self._state.validation.items())
        self._progress.say(f"{what}: {shown}")
        self._progress.resume()
        return values.get(self.settings.metric.removeprefix("val_"))

    def _sample(self) -> None:
        """Records the predictions for a few texts."""
        texts = self._validator.samples() if self._workers.is_chief else []
        if texts:
            self._state.samples.append({"step": self._state.step, "texts": list(map(list, texts))})
            self._recorder.samples(self._state.samples)

    def _write_row(self, validation: dict[str, float]) -> None:
        """Writes a row of metrics.csv, or adds a validation to the row of this step."""
        self._updates.fetch()
        state = self._state
        if state.history and state.history[-1]["step"] == state.step:
            if validation:
                state.history[-1] |= validation
                self._recorder.row(state.history)
            return
        row = {"step": state.step, "epoch": state.epoch + 1}
        if state.step:
            row |= named(state.end_row(), (*self._loss_values, "gradient_norm"))
            row["learning_rate"] = self._learning_rate
        state.history.append({**row, **validation})
        self._recorder.row(state.history)
        if not state.step:
            return
        seconds, tokens = self._stopwatch.total, state.target_tokens
        self._recorder.timing(state.step, state.epoch + 1, seconds, tokens, self._padding_share)

    @property
    def _learning_rate(self) -> float:
        """The rate of the last update."""
        last = max(int(self._optimizer.iterations.numpy()) - 1, 0)
        return float(self._schedule(last))

    def _save_checkpoint(self, milestone: bool) -> None:
        self._checkpoint_is_due = False
        self._updates.fetch()
        self._weights.save_checkpoint(milestone)

    def _look(self) -> None:
        """Updates the progress report."""
        self._updates.fetch()
        self._last_look = time.monotonic()
        loss = means(self._state.epoch_sums)["loss"]
        self._progress.update(self._state.step, self._state.epoch + 1, loss, self._updates.read)
        self._updates.read.clear()

    def _interrupt(self) -> NoReturn:
        self._save_checkpoint(milestone=False)
        self._workers.barrier()
        self._progress.say(
            f"Interrupted at step {self._state.step}, checkpoint written. "
            "Run the same command with --resume to continue."
        )
        raise TrainingInterrupted(self._ending.signal or self._signals.received)

    def _finish(self) -> TrainingResult:
        """Chooses the weights to keep, and writes the task."""
        state = self._state
        has_done_nothing = self._confirms and self._first == (state.step, state.validated_step)
        result = self._weights.confirm() if has_done_nothing else None
        if result is None:
            measure, measures_all = None, False
            if self._validator is not None:
                measure, measures_all = self._measure_at_end, self._validator.has_final
            result = self._weights.choose(measure, measures_all, self._goal)
        self._workers.barrier()
        shown = f", {result.metric} {result.value:.4f}" if result.value is not None else ""
        of_step = f"of step {result.best_step}" if result.best_step else "before the first update"
        kept = f"best, {of_step}" if result.kept == "best" else result.kept
        self._progress.say(f"Done after {result.step} steps: kept {kept}{shown}.")
        return result

    def _measure_at_end(self, name: str) -> float | None:
        return self._measure(f"{name} weights", final=True)


def _watches_batches(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback overrides what is called after batches, as its own attribute or not."""
    base = keras.callbacks.Callback
    return any(
        getattr(getattr(callback, name), "__func__", None) is not getattr(base, name)
        for name in ("on_train_batch_end", "on_batch_end")
    )
