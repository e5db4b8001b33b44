"""KerasTuner's oracles, which choose the next trial, with a time limit and a callback."""

import time
from collections.abc import Callable
from typing import Any

import keras_tuner

from keras_attn.tuning.tuning_settings import TuningSettings


class _Watched:
    """Mixin: no new trial after `deadline`, by `time.monotonic`; calls `on_trial_end` for each."""

    deadline: float | None = None
    on_trial_end: Callable[[], None] | None = None

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """Called by KerasTuner for the values of a trial."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            return {"status": "STOPPED"}
        return super().populate_space(trial_id)

    def end_trial(self, trial: Any) -> None:
        """Called by KerasTuner at the end of a trial."""
        super().end_trial(trial)
        if self.on_trial_end is not None:
            self.on_trial_end()


class _Random(_Watched, keras_tuner.oracles.RandomSearchOracle):
    pass


class _Bayesian(_Watched, keras_tuner.oracles.BayesianOptimizationOracle):
    pass


class _Hyperband(_Watched, keras_tuner.oracles.HyperbandOracle):
    pass


def make_oracle(tuning: TuningSettings, objective: keras_tuner.Objective) -> keras_tuner.Oracle:
    """Makes the oracle of a search, whose time begins.

    Args:
        tuning: The numbers of the search.
        objective: The value to minimize or maximize.
    """
    kinds = {"random": _Random, "bayesian": _Bayesian, "hyperband": _Hyperband}
    if tuning.algorithm == "hyperband":
        most = {"max_epochs": tuning.trial_epochs}
    else:
        most = {"max_trials": tuning.trials}
    oracle = kinds[tuning.algorithm](
        objective=objective,
        seed=tuning.seed,
        # A failed trial does not stop the search; if all fail, the search reports it.
        max_consecutive_failed_trials=tuning.trials + 1,
        **most,
    )
    if tuning.minutes is not None:
        oracle.deadline = time.monotonic() + 60 * tuning.minutes
    return oracle
