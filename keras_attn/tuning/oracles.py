"""KerasTuner's oracles, with a time limit and a callback."""

import time
from collections.abc import Callable
from typing import Any

import keras_tuner

from keras_attn.validation import require_one_of

ALGORITHMS = ("random", "bayesian", "hyperband")


class _Watched:
    """Mixin: no new trial after `deadline`, by `time.monotonic`, and a callback `on_trial_end`."""

    deadline: float | None = None
    on_trial_end: Callable[[], None] | None = None

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """Called by KerasTuner for the values of a trial."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            return {"status": "STOPPED"}
        return super().populate_space(trial_id)

    def end_trial(self, trial: Any) -> None:
        """Called by KerasTuner after each trial."""
        super().end_trial(trial)
        if self.on_trial_end is not None:
            self.on_trial_end()


class _Random(_Watched, keras_tuner.oracles.RandomSearchOracle):
    pass


class _Bayesian(_Watched, keras_tuner.oracles.BayesianOptimizationOracle):
    pass


class _Hyperband(_Watched, keras_tuner.oracles.HyperbandOracle):
    pass


def make_oracle(
    algorithm: str,
    objective: keras_tuner.Objective,
    trials: int,
    max_epochs: int,
    seed: int,
    minutes: float | None = None,
) -> keras_tuner.Oracle:
    """An oracle.

    Args:
        algorithm: `"random"`, `"bayesian"` (Gaussian process) or `"hyperband"`.
        objective: The metric to minimize or maximize.
        trials: Most trials; Hyperband has its own number, which follows from `max_epochs`.
        max_epochs: Most epochs of a trial, for Hyperband.
        seed: Seed of the drawn values.
        minutes: Time after which no trial is begun, or None.

    Raises:
        UserError: Unknown algorithm.
    """
    require_one_of("algorithm", algorithm, ALGORITHMS)
    # A failed trial is one of many; a search without any other is reported at its end.
    shared = {"objective": objective, "seed": seed, "max_consecutive_failed_trials": trials + 1}
    if algorithm == "hyperband":
        oracle = _Hyperband(max_epochs=max_epochs, **shared)
    else:
        kind = _Random if algorithm == "random" else _Bayesian
        oracle = kind(max_trials=trials, **shared)
    if minutes is not None:
        oracle.deadline = time.monotonic() + 60 * minutes
    return oracle
