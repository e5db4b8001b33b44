"""The number of updates that fit into a time, for a learning rate that falls until its end."""

from keras_attn.training.state import TrainingState

# A fraction of the time.
_BETWEEN_PLANS = 0.05


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
