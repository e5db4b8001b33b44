"""The state of a run: all that a checkpoint has besides the variables."""

import dataclasses
from collections.abc import Container
from typing import Any

from keras_attn.renamed import renamed_keys
from keras_attn.training.settings import RENAMED_SETTINGS
from keras_attn.validation import UserError

# What a loss gives: sums over the real tokens, of all replicas where a step returns them.
SUMS = ("loss", "nll", "tokens", "correct")

LOSS_VALUES = ("loss", "nll", "accuracy", "perplexity")
"""Values that follow from the sums; a task may have fewer."""

_LOWER_IS_BETTER = (
    "loss",
    "nll",
    "perplexity",
    "per",
    "wer",
    "cer",
    "error_rate",
    "ter",
    "mae",
    "rmse",
)
_HIGHER_IS_BETTER = (
    "accuracy",
    "bleu",
    "chrf",
    "exact_match",
    "f1",
    "mcc",
    "spearman",
    "pearson",
    "r2",
)


def zero_sums() -> dict[str, float]:
    """Sums of nothing, by the names in `SUMS`."""
    return dict.fromkeys(SUMS, 0.0)


def named(values: dict[str, float], names: Container[str]) -> dict[str, float]:
    """Those of some values that have one of the names."""
    return {name: value for name, value in values.items() if name in names}


def means(sums: dict[str, float]) -> dict[str, float]:
    """Per-token values of sums: loss, nll and accuracy."""
    tokens = max(sums["tokens"], 1.0)
    return {
        "loss": sums["loss"] / tokens,
        "nll": sums["nll"] / tokens,
        "accuracy": sums["correct"] / tokens,
    }


@dataclasses.dataclass
class TrainingState:
    """The position of a run, and its sums and values so far.

    Attributes:
        step: Updates made.
        epoch: Epoch in progress, from 0.
        batch: Batches of this epoch already used.
        row_sums: Sums since the last row of metrics.csv.
        row_updates: Updates since then.
        row_gradient_norms: Sum of their gradients' norms.
        epoch_sums: Sums since the beginning of the epoch.
        history: Rows of metrics.csv.
        samples: Predictions for some held-out texts at validations, each `{"step": …,
            "texts": [[source, reference, prediction], …]}`.
        validated_step: Step of the last validation; -1 for none.
        validation: Values of the last validation.
        best_value: Best value of the metric that chooses, or None.
        best_loss: Loss of that validation, where it has one.
        best_step: Its step.
        waiting: Validations since then.
        target_tokens: Target tokens seen in all.
        seconds: Time spent training, in all parts of the run.
        settings: The settings that the run was started or resumed with.
        data: Checksum of the training examples; 0 where it is not known.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    row_sums: dict[str, float] = dataclasses.field(default_factory=zero_sums)
    row_updates: int = 0
    row_gradient_norms: float = 0.0
    epoch_sums: dict[str, float] = dataclasses.field(default_factory=zero_sums)
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    samples: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    validated_step: int = -1
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    best_value: float | None = None
    best_loss: float | None = None
    best_step: int = 0
    waiting: int = 0
    target_tokens: float = 0.0
    seconds: float = 0.0
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: int = 0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingState":
        """Reads what `to_dict` returned; unknown names are ignored."""
        names = {field.name for field in dataclasses.fields(cls)}
        state = cls(**{name: value for name, value in values.items() if name in names})
        state.settings = renamed_keys(state.settings, RENAMED_SETTINGS)
        return state

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers keep every bit."""
        return dataclasses.asdict(self)

    def add(self, values: dict[str, float]) -> None:
        """Counts one update's `UPDATE_VALUES`."""
        for name in SUMS:
            self.row_sums[name] += values[name]
            self.epoch_sums[name] += values[name]
        self.target_tokens += values["tokens"]
        self.row_updates += 1
        self.row_gradient_norms += values["gradient_norm"]

    def end_row(self) -> dict[str, float]:
        """Means since the last row, which ends here."""
        row = means(self.row_sums)
        row["gradient_norm"] = self.row_gradient_norms / max(self.row_updates, 1)
        self.row_sums, self.row_updates, self.row_gradient_norms = zero_sums(), 0, 0.0
        return row

    def judge(self, value: float, goal: str, start_gain: float = 0.0) -> bool:
        """Whether a validation's `value` is the best so far; counts those that are not.

        Of equal values that of the lower loss is better: a metric of few texts takes few values.
        It must be better than that before the first update by the fraction `start_gain` of this.
        """
        loss, than = self.validation.get("val_loss"), self.best_value
        if than is not None and self.best_step == 0:
            than += (start_gain if goal == "max" else -start_gain) * abs(than)
        is_tie = value == than and None not in (loss, self.best_loss)
        if better(value, than, goal) or (is_tie and loss < self.best_loss):
            self.best_value, self.best_loss, self.best_step = value, loss, self.step
            self.waiting = 0
            return True
        self.waiting += 1
        return False


def better(value: float, than: float | None, goal: str) -> bool:
    """Whether `value` beats `than` (None for nothing yet); NaN never does."""
    if value != value:
        return False
    return than is None or (value < than if goal == "min" else value > than)


def metric_goal(metric: str, goal: str) -> str:
    """`"min"` or `"max"`, for `"auto"` by the metric's name."""
    if goal != "auto":
        return goal
    name = metric.lower()
    if name.endswith(_LOWER_IS_BETTER):
        return "min"
    if name.endswith(_HIGHER_IS_BETTER):
        return "max"
    raise UserError(
        f"`metric_goal` must be 'min' or 'max' for this metric. Received: metric={metric!r}."
    )
