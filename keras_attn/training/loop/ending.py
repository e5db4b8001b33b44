"""Conditions that end a training: settings, callbacks, signals and the clock."""

import math

import keras

from keras_attn.training.loop.interruption import SignalWatch
from keras_attn.training.loop.schedules import PlannedCosine
from keras_attn.training.loop.time_plan import TimePlan
from keras_attn.training.reporting.recorder import Stopwatch
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState
from keras_attn.training.workers.workers import Workers


class Ending:
    """Decides when training ends, so that all workers decide alike.

    Args:
        settings: The settings of the run.
        state: Its state, which the trainer updates.
        schedule: The learning rates; a `PlannedCosine` is moved to end with the time.
        stopwatch: The time of the run.
        signals: The signals that this process received.
        workers: The workers.

    Attributes:
        signal: Number of the signal that ends the run, or `None`.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        state: TrainingState,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        stopwatch: Stopwatch,
        signals: SignalWatch,
        workers: Workers,
    ) -> None:
        self.signal: int | None = None
        self._settings, self._state = settings, state
        self._schedule, self._planner = schedule, None
        if isinstance(schedule, PlannedCosine):
            self._planner = TimePlan(60 * settings.max_minutes, state)
        self._stopwatch, self._signals, self._workers = stopwatch, signals, workers
        self._first_step = state.step
        self._last_step = math.inf  # that fits into the time
        self._is_stopped = self._time_is_up = False

    def agree(self, is_stopped: bool, checkpoint_is_due: bool) -> bool:
        """Exchanges what only one worker knows: signals, callbacks and the chief's clock.

        Args:
            is_stopped: Whether a callback of this worker stopped the training.
            checkpoint_is_due: Whether this worker's clock asks for a checkpoint.

        Returns:
            Whether the chief's clock asks for a checkpoint.
        """
        plan = self._planner.plan(self._state, self._stopwatch.here) if self._planner else 0
        values = (plan, self._signals.received or 0, is_stopped, self._is_late, checkpoint_is_due)
        of_all = self._workers.gather(values)
        self.signal = int(of_all[:, 1].max()) or None
        self._is_stopped = bool(of_all[:, 2].any())
        planned, _, _, self._time_is_up, checkpoint_is_due = of_all[0].tolist()
        if planned:
            self._last_step = int(planned)
            self._schedule.plan(self._last_step)
        return bool(checkpoint_is_due)

    @property
    def _is_late(self) -> bool:
        limit = self._settings.max_minutes
        # At least one update at each start, so that a run that is out of time can continue.
        begun = self._state.step > self._first_step
        return limit is not None and begun and self._stopwatch.here / 60 >= limit

    @property
    def is_enough(self) -> bool:
        """Whether no further update is made."""
        settings, state = self._settings, self._state
        return bool(
            self._is_stopped
            or self._time_is_up
            or state.step >= self._last_step
            or (settings.steps is not None and state.step >= settings.steps)
            or (0 < settings.patience <= state.waiting)
        )

    @property
    def is_finished(self) -> bool:
        """Whether no further epoch is begun."""
        epochs = self._settings.epochs
        return self.is_enough or (epochs is not None and self._state.epoch >= epochs)
