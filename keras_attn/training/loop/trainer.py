"""Training a task: the public entry."""

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from keras_attn.data import EpochPlan, plan_epoch
from keras_attn.documents import read_json
from keras_attn.files import replaced_folder, write_text
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.training.loop.checkpoints import (
    Checkpoints,
    assign_model_arrays,
    assign_optimizer_arrays,
    average_checkpoints,
    model_arrays,
    read_checkpoint,
)
from keras_attn.training.loop.freezing import frozen
from keras_attn.training.loop.interruption import SignalWatch, StopValidation, TrainingInterrupted
from keras_attn.training.loop.loop import BEST_FOLDER, TrainingLoop
from keras_attn.training.loop.optimizer import make_optimizer
from keras_attn.training.loop.schedules import PlannedCosine, WarmupCosine, make_schedule
from keras_attn.training.loop.step import TrainingStep
from keras_attn.training.loop.validation_set import ValidationSet, Validator, require_examples
from keras_attn.training.reporting.diagnosis import why_exhausted
from keras_attn.training.reporting.progress import QUIET, ProgressReport, say
from keras_attn.training.reporting.recorder import Recorder, SilentRecorder, validations
from keras_attn.training.reporting.run_folder import PREPARED, RunFolder
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState, better, metric_goal
from keras_attn.training.workers.strategy import (
    check_strategy,
    compiles_whole_updates,
    resolve_jit,
    strategy_of,
)
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError, require

# What decides which rows are in which batch.
_OF_THE_PLAN = ("batch_tokens", "seed", "jit")


@dataclass(frozen=True)
class TrainingResult:
    """What a finished run came to.

    Attributes:
        step: Updates made.
        kept: Which weights the task folder and the model now have: `"best"`, `"average"` or
            `"last"`.
        metric: Name of the metric that chose, or None without validation.
        value: Its value for the kept weights, or None.
        best_step: Step of the best validation, or None.
        best_value: Value of the best weights: at the end where that is judged by more (see
            `ValidationSet`), otherwise that of their validation; or None.
        average_value: Value of the averaged weights at the end, or None.
    """

    step: int
    kept: str
    metric: str | None = None
    value: float | None = None
    best_step: int | None = None
    best_value: float | None = None
    average_value: float | None = None


class Trainer:
    """Trains a task's backbone and writes a run folder.

    The same settings, data, machine and model give the same metrics.csv to the bit; a run that was
    killed and resumed gives it as well.

    Args:
        task: Has `backbone`, a built `keras.Model` from a batch's inputs to logits (rows, length,
            vocabulary), and `save(folder)`. It may have `loss(labels, outputs, label_smoothing)`
            that returns four sums as `token_cross_entropy` does. For several devices the backbone
            must have been built inside `make_strategy(settings.strategy).scope()`.
        settings: The numbers of the run.
        out_folder: The run folder: empty (but for run.yaml), or resumed.
        callbacks: Keras callbacks; their own state is not part of checkpoints.
        schedule: A Keras learning-rate schedule instead of the settings' one.

    Raises:
        UserError: The settings ask for another strategy than the model was built under.
    """

    def __init__(
        self,
        task: Any,
        settings: TrainingSettings,
        out_folder: str | Path,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
    ) -> None:
        self.task = task
        self.settings = settings
        self.out_folder = Path(out_folder)
        self._callbacks = list(callbacks)
        self._schedule = schedule
        self._loss = getattr(task, "loss", None) or token_cross_entropy
        self._strategy = strategy_of(task.backbone)
        check_strategy(settings.strategy, self._strategy)
        self._goal = metric_goal(settings.metric, settings.metric_goal)
        self._workers = Workers(self._strategy)
        self._console = Console(highlight=False) if self._workers.is_chief else QUIET
        self._say = partial(say, console=self._console)

    def fit(
        self,
        train_examples: Any,
        validation: ValidationSet | Callable[[], dict[str, float]] | None = None,
        resume: bool = False,
    ) -> TrainingResult:
        """Trains until the settings say that it is enough, and writes the task folder.

        Args:
            train_examples: Tokenised examples, as `keras_attn.data` batches them.
            validation: What to judge by: a `ValidationSet`, or a callable that gives values by
                name; None for no validation, and then the last weights are kept.
            resume: Go on from the last checkpoint in the run folder; from the beginning where
                there is none.

        Returns:
            What came out. The backbone then has the weights that were kept.

        Raises:
            UserError: `train_examples` are other data, the folder is in use or not writable, a
                checkpoint does not fit, the data changed since the checkpoint, `freeze` matches
                nothing or everything, the loss is no longer a number, or there is not enough
                memory.
            TrainingInterrupted: SIGINT or SIGTERM came; a checkpoint was written.
        """
        require_examples(train_examples=train_examples)
        require(
            validation is None or isinstance(validation, ValidationSet) or callable(validation),
            "`validation` must be a `ValidationSet`, or a callable that gives values by name.",
            validation=type(validation).__name__,
        )
        if self.settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        run_folder = RunFolder(self.out_folder, resume, PREPARED, self._workers.is_chief)
        freezing = frozen(self.task.backbone, self.settings.freeze)
        with freezing as told, run_folder as folder, SignalWatch() as signals:
            if told:
                self._say(told)
            loop = self._prepare(folder, signals, train_examples, validation, resume)
            try:
                loop.run()
                return self._finish(loop)
            except StopValidation:
                raise TrainingInterrupted(signals.received) from None
            except tf.errors.ResourceExhaustedError as error:
                raise UserError(why_exhausted(error, self.settings)) from error
            finally:
                loop.close()

    def _prepare(
        self,
        folder: RunFolder,
        signals: SignalWatch,
        examples: Any,
        validation: ValidationSet | Callable | None,
        resume: bool,
    ) -> TrainingLoop:
        settings, model = self.settings, self.task.backbone
        chief = self._workers.is_chief
        whole_updates = compiles_whole_updates(self._strategy)
        static_shapes = whole_updates or resolve_jit(settings.jit) == "on"

        def plan(epoch: int) -> EpochPlan:
            return plan_epoch(
                examples, settings.batch_tokens, settings.seed, epoch, static_shapes=static_shapes
            )

        total_steps = self._total_steps(len(plan(0)))
        schedule = self._schedule or make_schedule(
            settings.schedule,
            settings.learning_rate,
            self._warmup_steps(total_steps),
            total_steps,
            getattr(model, "hidden_dim", None),
            settings.learning_rate_floor,
        )
        loss_scaling = settings.precision == "mixed_float16"
        with self._strategy.scope():
            if settings.max_minutes is not None and isinstance(schedule, WarmupCosine):
                schedule = PlannedCosine(**schedule.get_config())
            optimizer = make_optimizer(settings, schedule, model.trainable_variables, loss_scaling)
        step = TrainingStep(
            model,
            optimizer,
            self._strategy,
            self._loss,
            settings.label_smoothing,
            settings.batch_tokens,
            jit=static_shapes and not whole_updates,
            parts=max(settings.parts, 1),
            whole_updates=whole_updates,
            accumulate=settings.accumulate_steps > 1,
            clip_norm=settings.clip_norm,
            consistency=settings.consistency,
        )
        keep = max(settings.keep_checkpoints, settings.average_last)
        checkpoints = Checkpoints(folder.checkpoints, keep, self._say, self._workers.is_chief)
        state, data = TrainingState(), examples.checksum
        if resume:
            state = self._restore(folder, checkpoints, model, optimizer, data)
        confirms = state.settings == settings.to_dict()
        state.settings, state.data = settings.to_dict(), data
        validator = None
        if validation is not None:
            validator = Validator(
                validation,
                model,
                self._strategy,
                self._loss,
                settings.label_smoothing,
                settings.batch_tokens,
                static_shapes=whole_updates,
            )
        return TrainingLoop(
            task=self.task,
            settings=settings,
            goal=self._goal,
            examples=examples,
            loss=self._loss,
            plan=plan,
            strategy=self._strategy,
            workers=self._workers,
            schedule=schedule,
            optimizer=optimizer,
            train_step=step,
            validator=validator,
            callbacks=self._callbacks,
            folder=folder,
            checkpoints=checkpoints,
            state=state,
            recorder=Recorder(folder, state) if chief else SilentRecorder(),
            progress=ProgressReport(total_steps, state.step, self._console),
            signals=signals,
            confirms=confirms,
        )

    def _warmup_steps(self, total_steps: int) -> int:
        """The warm-up; cosine, which ends with the run, has a tenth of a run that is shorter."""
        given = self.settings.warmup_steps
        if self.settings.schedule != "cosine" or given < total_steps:
            return given
        self._say(
            f"The warm-up of {given} steps does not fit a run of {total_steps}: "
            f"it is shortened to {total_steps // 10}."
        )
        return total_steps // 10

    def _total_steps(self, batches: int) -> int:
        require(batches > 0, "There must be at least one training example.", batches=batches)
        limits = [self.settings.steps] if self.settings.steps is not None else []
        if self.settings.epochs is not None:
            per_epoch = math.ceil(batches / self.settings.accumulate_steps)
            limits.append(self.settings.epochs * per_epoch)
        return min(limits)

    def _restore(
        self,
        run: RunFolder,
        checkpoints: Checkpoints,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        data: int,
    ) -> TrainingState:
        found = self._common_checkpoint(checkpoints)
        if found is None:
            self._require_nothing_to_lose(run)
            self._say(
                f"There is no checkpoint in {checkpoints.folder}: starting from the beginning."
            )
            return TrainingState()
        folder, arrays, values = found
        state, now = TrainingState.from_dict(values), self.settings.to_dict()
        require(
            state.data in (0, data),
            f"The training data must be those of the run that is resumed, as {folder} has it.",
            checksum=data,
            of_the_run=state.data,
        )
        for name in _OF_THE_PLAN:
            require(
                state.settings.get(name, now[name]) == now[name],
                f"A run that is resumed keeps its `{name}`, {state.settings.get(name)}: its place "
                "in the data would be another.",
                **{name: now[name]},
            )
        require(
            state.best_value is None or state.settings.get("metric") in (None, now["metric"]),
            "A run that is resumed keeps its `metric`, which has chosen the best model so far.",
            metric=now["metric"],
            of_the_run=state.settings.get("metric"),
        )
        assign_model_arrays(model, arrays)
        assign_optimizer_arrays(optimizer, arrays)
        changed = [
            f"{name} {before!r} -> {now[name]!r}"
            for name, before in state.settings.items()
            if name in now and now[name] != before
        ]
        note = f" Settings changed: {', '.join(changed)}." if changed else ""
        self._say(f"Resuming from {folder} (epoch {state.epoch + 1}, step {state.step}).{note}")
        return state

    def _require_nothing_to_lose(self, run: RunFolder) -> None:
        """Raises if a run whose checkpoints are gone has a model that training would replace."""
        # A run killed before its first checkpoint has validated once, and has its best weights.
        begun = (run.checkpoints / BEST_FOLDER).exists() and validations(run.metrics) < 2
        kept = run.task.exists() and (run.summary.exists() or not begun)
        require(
            self._workers.all(not kept),
            "The checkpoints of the run are gone, and training from the beginning would replace "
            "its model. Start a new run in another folder.",
            checkpoints=str(run.checkpoints),
            model=str(run.task),
        )

    def _common_checkpoint(self, checkpoints: Checkpoints) -> tuple | None:
        """Folder, arrays and state of the newest sound checkpoint that all workers see."""
        found = checkpoints.latest()
        steps = self._workers.gather([_step(found)])[:, 0]
        common = int(steps.min())
        require(
            common >= 0 or steps.max() < 0,
            "The run folder must be on a disk that all workers share: "
            f"worker {int(steps.argmin())} sees no checkpoint in it.",
            folder=str(checkpoints.folder),
        )
        if _step(found) > common:
            found = checkpoints.latest(at_most=common)
        if not self._workers.all(_step(found) == common):
            raise UserError(
                f"The workers have no sound checkpoint of {checkpoints.folder} in common."
            )
        return found

    def _finish(self, loop: TrainingLoop) -> TrainingResult:
        """Chooses the weights to keep, and writes the task."""
        state = loop.state
        confirmed = self._confirmed(loop) if loop.has_done_nothing else None
        if confirmed is not None:
            self._workers.barrier()
            return self._told(loop, confirmed)
        kept, values = self._choose(loop)
        result = TrainingResult(
            step=state.step,
            kept=kept,
            metric=self.settings.metric if loop.validator is not None else None,
            value=values.get(kept),
            best_step=state.best_step if state.best_value is not None else None,
            best_value=values.get("best", state.best_value),
            average_value=values.get("average"),
        )
        if self._workers.is_chief:
            with replaced_folder(loop.folder.task) as temporary:
                self.task.save(temporary)
            summary = json.dumps(asdict(result), indent=1) + "\n"
            write_text(loop.folder.summary, summary)
        self._workers.barrier()
        return self._told(loop, result)

    def _told(self, loop: TrainingLoop, result: TrainingResult) -> TrainingResult:
        shown = f", {result.metric} {result.value:.4f}" if result.value is not None else ""
        loop.progress.say(f"Done after {result.step} steps: kept {result.kept}{shown}.")
        return result

    def _confirmed(self, loop: TrainingLoop) -> TrainingResult | None:
        """What an earlier part of the run came to, if its task folder is sound."""
        result, arrays = None, self._saved_weights(loop)
        with contextlib.suppress(OSError, ValueError, TypeError):
            result = TrainingResult(**read_json(loop.folder.summary))
        sound = arrays is not None and result is not None and result.step == loop.state.step
        if not self._workers.all(sound):
            return None
        if result.best_value is not None:
            try:
                read_checkpoint(loop.checkpoints.folder / BEST_FOLDER)
            except UserError as error:
                loop.progress.say(f"{error} The model in {loop.folder.task} is kept as it is.")
        assign_model_arrays(self.task.backbone, arrays)
        return result

    def _saved_weights(self, loop: TrainingLoop) -> dict[str, np.ndarray] | None:
        """The weights in the task folder, `None` where there is no sound one."""
        try:
            task = type(self.task).load(loop.folder.task, dtype=self.settings.precision)
        except (AttributeError, OSError, ValueError):
            return None
        return model_arrays(task.backbone)

    def _choose(self, loop: TrainingLoop) -> tuple[str, dict[str, float]]:
        """Gives the model the best or the averaged weights, the last where there are neither.

        Returns:
            The name of what was chosen, and the values of what there was to choose from.
        """
        state, model = loop.state, self.task.backbone
        candidates = {"best": self._best_weights(loop), "average": self._averaged_weights(loop)}
        candidates = {name: arrays for name, arrays in candidates.items() if arrays is not None}
        values = {"best": state.best_value} if "best" in candidates else {}
        if loop.validator is not None and "average" in candidates:
            for name in candidates if loop.validator.has_final else ["average"]:
                assign_model_arrays(model, candidates[name])
                values[name] = loop.measure(f"{name} weights", final=True)
        kept = next(iter(candidates), "last")
        if len(candidates) > 1 and better(values["average"], values["best"], self._goal):
            kept = "average"
        if candidates:
            assign_model_arrays(model, candidates[kept])
        else:
            loop.optimizer.finalize_variable_values(model.trainable_variables)
        return kept, values

    def _averaged_weights(self, loop: TrainingLoop) -> dict[str, np.ndarray] | None:
        wanted = self.settings.average_last
        folders = loop.checkpoints.milestones()[-wanted:] if wanted > 1 else []
        return average_checkpoints(folders) if len(folders) > 1 else None

    def _best_weights(self, loop: TrainingLoop) -> dict[str, np.ndarray] | None:
        if loop.state.best_value is None:
            return None
        arrays = None
        try:
            arrays, _ = read_checkpoint(loop.checkpoints.folder / BEST_FOLDER)
        except UserError as error:
            arrays = self._saved_weights(loop)
            others = "other weights" if arrays is None else f"those of {loop.folder.task}"
            loop.progress.say(f"{error} Keeping {others} instead.")
        return arrays if self._workers.all(arrays is not None) else None


def _step(checkpoint: tuple | None) -> int:
    return checkpoint[2]["step"] if checkpoint else -1
