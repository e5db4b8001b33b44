"""Learning rates by step. Step 0 is the first update; warm-up is linear and never gives 0."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.training.settings import SCHEDULES, TrainingSettings
from keras_attn.validation import UserError, require, require_one_of, require_positive


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A learning-rate schedule whose configuration is the arguments of its constructor."""

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}


def _update_number(step: Any) -> Any:
    """The number of the update that `step` (from 0) makes, from 1, as float32."""
    return ops.cast(step, "float32") + 1.0


@keras.saving.register_keras_serializable("keras_attn")
class TransformerSchedule(Schedule):
    """The paper's schedule: scale · d^-0.5 · min(n^-0.5, n · warmup^-1.5), n from 1.

    Args:
        hidden_dim: Width d of the model.
        warmup_steps: Updates with a rising rate.
        scale: Factor on the whole.

    Examples:
        >>> schedule = TransformerSchedule(hidden_dim=512, warmup_steps=4000)
        >>> optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9)
        >>> [f"{float(schedule(step)):.1e}" for step in (0, 3999, 15999)]
        ['1.7e-07', '7.0e-04', '3.5e-04']

    Reference: Vaswani et al. 2017, Attention Is All You Need, equation 3.
    """

    def __init__(self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0) -> None:
        require_positive(hidden_dim=hidden_dim, warmup_steps=warmup_steps)
        _require_rate_above_zero(scale=scale)
        self.hidden_dim = hidden_dim
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step: Any) -> Any:
        """Rate of the update after `step` updates, a float32 scalar."""
        number = _update_number(step)
        shape = ops.minimum(ops.rsqrt(number), number * self.warmup_steps**-1.5)
        return self.scale * self.hidden_dim**-0.5 * shape


@keras.saving.register_keras_serializable("keras_attn")
class InverseSquareRoot(Schedule):
    """Linear warm-up to `peak`, then peak · (warmup / n)^0.5.

    Args:
        peak: Largest rate, reached at update `warmup_steps`.
        warmup_steps: Updates with a rising rate.

    Examples:
        >>> schedule = InverseSquareRoot(peak=0.001, warmup_steps=100)
        >>> optimizer = keras.optimizers.Adam(schedule)
        >>> [round(float(schedule(step)), 5) for step in (0, 99, 399)]
        [1e-05, 0.001, 0.0005]
    """

    def __init__(self, peak: float, warmup_steps: int = 4000) -> None:
        _require_rate_above_zero(peak=peak)
        require_positive(warmup_steps=warmup_steps)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        """Rate of the update after `step` updates, a float32 scalar."""
        number = _update_number(step)
        falling = ops.rsqrt(number) * self.warmup_steps**0.5
        return self.peak * ops.minimum(number / self.warmup_steps, falling)


@keras.saving.register_keras_serializable("keras_attn")
class WarmupCosine(Schedule):
    """Linear warm-up to `peak`, then half a cosine down to `floor` at `total_steps`.

    Args:
        peak: Largest rate, reached at update `warmup_steps`.
        warmup_steps: Updates with a rising rate; 0 for none.
        total_steps: Update from which the rate stays at `floor`.
        floor: Last rate.

    Examples:
        >>> schedule = WarmupCosine(peak=0.001, warmup_steps=10, total_steps=110)
        >>> optimizer = keras.optimizers.Adam(schedule)
        >>> [round(float(schedule(step)), 5) for step in (0, 9, 59, 109)]
        [0.0001, 0.001, 0.0005, 0.0]

    Reference: Loshchilov & Hutter 2017, SGDR, equation 5, without restarts.
    """

    def __init__(
        self, peak: float, warmup_steps: int, total_steps: int, floor: float = 0.0
    ) -> None:
        _require_rate_above_zero(peak=peak)
        require_positive(total_steps=total_steps)
        require(
            0 <= warmup_steps < total_steps,
            "`warmup_steps` must be at least 0 and less than `total_steps`.",
            warmup_steps=warmup_steps,
            total_steps=total_steps,
        )
        require(0 <= floor <= peak, "`floor` must be in [0, peak].", floor=floor, peak=peak)
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.floor = floor

    def __call__(self, step: Any) -> Any:
        """Rate of the update after `step` updates, a float32 scalar."""
        number, (warmup_steps, total_steps) = _update_number(step), self._ends()
        span = total_steps - warmup_steps
        progress = ops.clip((number - warmup_steps) / span, 0.0, 1.0)
        falling = 0.5 * (1.0 + ops.cos(math.pi * progress))
        rate = self.floor + (self.peak - self.floor) * falling
        rising = self.peak * number / ops.maximum(ops.cast(warmup_steps, "float32"), 1.0)
        return ops.minimum(rate, rising)

    def _ends(self) -> tuple[Any, Any]:
        """The updates at which the rate stops to rise, and to fall."""
        return self.warmup_steps, self.total_steps


@keras.saving.register_keras_serializable("keras_attn")
class PlannedCosine(WarmupCosine):
    """`WarmupCosine` for a run that a clock may end: its last update can be moved while it runs.

    The warm-up is the same fraction of fewer updates.

    Args:
        peak: Largest rate, reached at update `warmup_steps`.
        warmup_steps: Updates with a rising rate; 0 for none.
        total_steps: Update from which the rate stays at `floor`, until `plan` says otherwise.
        floor: Last rate.
    """

    def __init__(
        self, peak: float, warmup_steps: int, total_steps: int, floor: float = 0.0
    ) -> None:
        super().__init__(peak, warmup_steps, total_steps, floor)
        self._planned = keras.Variable(
            float(total_steps), dtype="float32", trainable=False, name="planned_steps"
        )

    def plan(self, total_steps: int) -> None:
        """Moves the last update, to `total_steps` at most as many as at the beginning."""
        self._planned.assign(float(min(total_steps, self.total_steps)))

    def _ends(self) -> tuple[Any, Any]:
        total = self._planned.value
        return total * (self.warmup_steps / self.total_steps), total


@keras.saving.register_keras_serializable("keras_attn")
class WarmupConstant(Schedule):
    """Linear warm-up to `peak`, then `peak`.

    Args:
        peak: Largest rate, reached at update `warmup_steps`.
        warmup_steps: Updates with a rising rate; 0 for none.

    Examples:
        >>> schedule = WarmupConstant(peak=0.001, warmup_steps=10)
        >>> optimizer = keras.optimizers.Adam(schedule)
        >>> [round(float(schedule(step)), 5) for step in (0, 9, 999)]
        [0.0001, 0.001, 0.001]
    """

    def __init__(self, peak: float, warmup_steps: int = 0) -> None:
        _require_rate_above_zero(peak=peak)
        require(warmup_steps >= 0, "`warmup_steps` must be at least 0.", warmup_steps=warmup_steps)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        """Rate of the update after `step` updates, a float32 scalar."""
        return self.peak * ops.minimum(_update_number(step) / max(self.warmup_steps, 1), 1.0)


def make_schedule(
    name: str,
    learning_rate: float,
    warmup_steps: int,
    total_steps: int | None = None,
    hidden_dim: int | None = None,
    floor: float = 0.0,
) -> Schedule:
    """Makes a learning-rate schedule by its name.

    Args:
        name: `"transformer"`, `"inverse_square_root"`, `"cosine"` or `"constant"`.
        learning_rate: The peak; for `"transformer"` the factor on the paper's formula.
        warmup_steps: Updates with a rising rate.
        total_steps: Updates of the whole run; only `"cosine"` needs it.
        hidden_dim: Width of the model; only `"transformer"` needs it.
        floor: Last rate of `"cosine"`.

    Returns:
        A Keras learning-rate schedule.

    Raises:
        UserError: Unknown name, or a number that the schedule needs is missing or out of range.

    Examples:
        >>> schedule = make_schedule("cosine", 0.001, warmup_steps=10, total_steps=110)
        >>> optimizer = keras.optimizers.Adam(schedule)
        >>> round(float(schedule(59)), 5)
        0.0005
    """
    require_one_of("schedule", name, SCHEDULES)
    if name == "transformer":
        if hidden_dim is None:
            raise UserError(
                "`hidden_dim` must be given for the schedule 'transformer'. "
                "Received: hidden_dim=None."
            )
        return TransformerSchedule(hidden_dim, warmup_steps, learning_rate)
    if name == "inverse_square_root":
        return InverseSquareRoot(learning_rate, warmup_steps)
    if name == "cosine":
        if total_steps is None:
            raise UserError(
                "`total_steps` must be given for the schedule 'cosine'. Received: total_steps=None."
            )
        return WarmupCosine(learning_rate, warmup_steps, total_steps, floor)
    return WarmupConstant(learning_rate, warmup_steps)


def schedule_of(
    settings: TrainingSettings, total_steps: int, hidden_dim: int | None, say: Callable[[str], None]
) -> Schedule:
    """Makes the schedule of a run.

    A cosine, which ends with the run, warms up for a tenth of a run shorter than its warm-up.

    Args:
        settings: The settings of the run.
        total_steps: Updates of the whole run.
        hidden_dim: Width of the model, if it has one.
        say: Receives a line where the warm-up is shortened.
    """
    warmup_steps = settings.warmup_steps
    if settings.schedule == "cosine" and warmup_steps >= total_steps:
        say(
            f"The warm-up of {warmup_steps} steps does not fit a run of {total_steps}: "
            f"it is shortened to {total_steps // 10}."
        )
        warmup_steps = total_steps // 10
    return make_schedule(
        settings.schedule,
        settings.learning_rate,
        warmup_steps,
        total_steps,
        hidden_dim,
        settings.learning_rate_floor,
    )


def planned(
    schedule: keras.optimizers.schedules.LearningRateSchedule,
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Makes a `WarmupCosine` movable, for a run that a clock ends; others stay as they are."""
    is_cosine = isinstance(schedule, WarmupCosine)
    return PlannedCosine(**schedule.get_config()) if is_cosine else schedule


def _require_rate_above_zero(**received: float) -> None:
    for name, value in received.items():
        require(value > 0, f"`{name}` must be above 0.", **{name: value})
