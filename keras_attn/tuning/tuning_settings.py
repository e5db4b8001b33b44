"""Settings of a search."""

from dataclasses import dataclass

from keras_attn.tuning.oracles import ALGORITHMS
from keras_attn.validation import require, require_one_of, require_positive


@dataclass(frozen=True)
class TuningSettings:
    """Numbers of a search.

    Attributes:
        algorithm: `"random"`, `"bayesian"` or `"hyperband"`.
        trials: Most trials. Hyperband's number follows from `trial_epochs`.
        minutes: Time after which no trial is started, or None.
        trial_minutes: Training time of a trial, or None for that of the recipe.
        trial_epochs: Epochs of a trial (for Hyperband the most), or None for those of the recipe.
        max_parameters: Largest number of parameters of a model, or None.
        workers: Trials at the same time, each in its own process; 1 needs no chief.
        seed: Seed of random choices.
    """

    algorithm: str = "bayesian"
    trials: int = 12
    minutes: float | None = None
    trial_minutes: float | None = None
    trial_epochs: int | None = None
    max_parameters: int | None = None
    workers: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        require_one_of("algorithm", self.algorithm, ALGORITHMS)
        require_positive(trials=self.trials, workers=self.workers)
        for name in ("trial_epochs", "max_parameters"):
            if getattr(self, name) is not None:
                require_positive(**{name: getattr(self, name)})
        for name in ("minutes", "trial_minutes"):
            value = getattr(self, name)
            require(value is None or value > 0, f"`{name}` must be above 0.", **{name: value})
        require(
            self.algorithm != "hyperband" or self.trial_epochs is not None,
            "Hyperband needs `trial_epochs`, the most epochs of a trial.",
            trial_epochs=self.trial_epochs,
        )
