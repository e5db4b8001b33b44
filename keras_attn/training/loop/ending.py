"""Conditions that end a training: settings, callbacks, signals and the clock."""

import math
import signal
import threading
import types
from dataclasses import dataclass

import keras

from keras_attn.training.loop.schedules import PlannedCosine
from keras_attn.training.reporting.recorder import Stopwatch
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState
from keras_attn.training.workers.workers import Workers

# A fraction of the time of a run that a clock ends.
_BETWEEN_PLANS = 0.05


class TrainingInterrupted(SystemExit):
    """Training was stopped by a signal after its checkpoint was written.

    Ends the process, if nothing catches it, with status 128 + the signal's number, as shells
    expect.

    Args:
        signal_number: The signal.

    Examples:
        >>> try:
        ...     raise TrainingInterrupted(2)  # as `Task.fit` and `Trainer.fit` do after Ctrl-C
        ... except TrainingInterrupted as interrupted:
        ...     print(interrupted.signal_number, interrupted.code)
        2 130
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(128 + signal_number)
        self.signal_number = signal_number


class StopValidation(BaseException):
    """A signal was received during a validation, which changes nothing and can be repeated.

    It is no `Exception`, so that metrics that catch those do not catch it.
    """


class SignalWatch:
    """Records the first SIGINT or SIGTERM; a second one acts as usual.

    Use as a context manager. Only the main thread may watch signals; elsewhere it does nothing.

    Attributes:
        received: Number of the signal that was received, or `None`.
    """

    def __init__(self) -> None:
        self.received = None
        self.in_validation = False
        self._before = {}

    def __enter__(self) -> "SignalWatch":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: types.FrameType | None) -> None:
        self.received = number
        self.__exit__()
        if self.in_validation:
            raise StopValidation


@dataclass
class Ending:
    """Decides when training ends, so that all workers decide alike.

    Attributes:
        settings: The settings of the run.
        state: Its state, which the trainer updates.
        schedule: The learning rates; a `PlannedCosine` is moved to end with the time.
        stopwatch: The time of the run.
        signals: The signals that this process received.
        workers: The workers.
        signal: Number of the signal that ends the run, or `None`.
    """

    settings: TrainingSettings
    state: TrainingState
    schedule: keras.optimizers.schedules.LearningRateSchedule
    stopwatch: Stopwatch
    signals: SignalWatch
    workers: Workers
    signal: int | None = None

    def __post_init__(self) -> None:
        self._planner = None
        if isinstance(self.schedule, PlannedCosine):
            self._planner = TimePlan(60 * self.settings.max_minutes, self.state)
        self._first_step = self.state.step
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
        plan = self._planner.plan(self.state, self.stopwatch.here) if self._planner else 0
        values = (plan, self.signals.received or 0, is_stopped, self._is_late, checkpoint_is_due)
        of_all = self.workers.gather(values)
        self.signal = int(of_all[:, 1].max()) or None
        self._is_stopped = bool(of_all[:, 2].any())
        planned, _, _, self._time_is_up, checkpoint_is_due = of_all[0].tolist()
        if planned:
            self._last_step = int(planned)
            self.schedule.plan(self._last_step)
        return bool(checkpoint_is_due)

    @property
    def _is_late(self) -> bool:
        limit = self.settings.max_minutes
        # At least one update at each start, so that a run that is out of time can continue.
        begun = self.state.step > self._first_step
        return limit is not None and begun and self.stopwatch.here / 60 >= limit

    @property
    def is_enough(self) -> bool:
        """Whether no further update is made."""
        settings, state = self.settings, self.state
        return bool(
            self._is_stopped
            or self._time_is_up
            or state.step >= self._last_step
            or (settings.steps is not None and state.step >= settings.steps)
            or (state.step >= settings.min_steps and self._is_content(state.epoch))
        )

    def is_last_epoch(self, is_complete: bool) -> bool:
        """Whether training ends with the epoch in progress.

        Args:
            is_complete: Whether it has no further batch.
        """
        enough = is_complete and self.state.step >= self.settings.min_steps
        return self.is_enough or (enough and self._is_content(self.state.epoch + 1))

    def _is_content(self, epochs: int) -> bool:
        """Whether a number of epochs is enough, or validations improve no longer."""
        settings = self.settings
        all_epochs = settings.epochs is not None and epochs >= settings.epochs
        return all_epochs or 0 < settings.patience <= self.state.waiting


class TimePlan:
    """Plans the last update of a run that a clock ends.

    At its start a resumed run uses its speed so far, and a new one its other limits. Then the speed
    is measured, with validations, and the plan is made again twenty times.

    Args:
        seconds: The time.
        state: The state of the run at its start.
    """

    def __init__(self, seconds: float, state: TrainingState) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._begin = (state.step, 0.0)
        self._is_measured = False
        self._before = state.step / state.seconds if state.step and state.seconds else None

    def plan(self, state: TrainingState, seconds: float) -> int:
        """Plans the last update.

        Args:
            state: The state of the run.
            seconds: Time since its start.

        Returns:
            The last update, or 0 if the plan does not change.
        """
        if seconds < self._next:
            return 0
        step, begin = self._begin
        speed = self._before
        if state.step > step and not self._is_measured:
            # The first update includes the making of the graphs, so it has no typical speed.
            self._begin, self._is_measured = (state.step, seconds), True
            self._next = seconds + _BETWEEN_PLANS * self._seconds
            return 0
        if state.step > step:
            speed = (state.step - step) / max(seconds - begin, 1e-9)
        if speed is None:
            return 0
        self._next = seconds + _BETWEEN_PLANS * self._seconds
        left = max(self._seconds - seconds, 0.0)
        return max(state.step + round(speed * left), state.step + (not self._is_measured))
