"""Description of a search: its numbers, and its file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_attn.training.run_settings import read_yaml
from keras_attn.training.typed_fields import check_numbers
from keras_attn.validation import require, require_one_of

ALGORITHMS = ("random", "bayesian", "hyperband")
SEARCH_FILE = "search.yaml"


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
        check_numbers(
            self,
            positive=("trials", "workers", "trial_epochs", "max_parameters"),
            above_zero=("minutes", "trial_minutes"),
        )
        require(
            self.algorithm != "hyperband" or self.trial_epochs is not None,
            "Hyperband needs `trial_epochs`, the most epochs of a trial.",
            trial_epochs=self.trial_epochs,
        )


def recorded_search(out: str | Path) -> dict[str, Any]:
    """Returns "settings", "space" and "tuning" of the search in a folder; empty if none."""
    path = Path(out) / SEARCH_FILE
    return read_yaml(path) if path.is_file() else {}
