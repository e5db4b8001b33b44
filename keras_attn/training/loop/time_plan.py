"""Number of updates that fit into a time, for a learning rate that falls until its end."""

from keras_attn.training.state import TrainingState

# As parts of the time. What is planned last is wrong by a part of the last one.
_BETWEEN_PLANS = 0.05


class TimePlan:
    """Plans the last update of a run that a clock ends.

    At its start a run that is resumed goes by its speed so far, and a new one by its other ends.
    Then the speed is measured, validations included, and the plan is made anew twenty times.

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
        """Gives the last update, 0 where the plan stays as it is.

        Args:
            state: The state of the run.
            seconds: Time since its start.
        """
        if seconds < self._next:
            return 0
        step, begin = self._begin
        speed = self._before
        if state.step > step and not self._is_measured:
            # The first update includes the making of the graphs, which tells nothing of speed.
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
