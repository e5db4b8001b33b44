"""Settings of a training, checked."""

import dataclasses
import difflib
import math
from typing import Any

from keras_attn.renamed import renamed_fields
from keras_attn.training.typed_fields import check_numbers, check_types
from keras_attn.validation import UserError, require, require_one_of, require_rate

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16", "float64")
STRATEGIES = ("auto", "one", "mirrored", "multi_worker", "tpu")
SCHEDULES = ("transformer", "inverse_square_root", "cosine", "constant")
_CHOICES = {
    "schedule": SCHEDULES,
    "optimizer": ("adam", "muon"),
    "precision": PRECISIONS,
    "jit": ("auto", "on", "off"),
    "strategy": STRATEGIES,
    "metric_goal": ("auto", "min", "max"),
}
_POSITIVE = (
    *("epochs", "steps", "max_parameters"),
    *("batch_tokens", "accumulate_steps", "keep_checkpoints"),
)
_MOST_SHARDS = 256
_ABOVE_ZERO = ("learning_rate", "epsilon", "max_minutes", "join_timeout", "heartbeat_timeout")

RENAMED_SETTINGS = {
    "parts": "cpu_shards",
    "join_seconds": "join_timeout",
    "lost_seconds": "heartbeat_timeout",
}
"""New names of settings by those of the version before."""


@renamed_fields(**RENAMED_SETTINGS)
@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training.

    Training ends at `epochs` (but not before `min_steps`), `steps` or `max_minutes`, whichever
    comes first; at least one of `epochs` and `steps` must be set.

    Attributes:
        epochs: Passes over the data, or None.
        steps: Updates of the weights, or None.
        min_steps: Updates before which neither `epochs` nor `patience` ends the training: where the
            data are few, they are passed over more often.
        max_minutes: Minutes after which training stops cleanly, with an update at least, or None;
            a run that is resumed has as many again. A run that this ends is not reproducible to
            the bit. `"cosine"` then falls until that time, by the measured speed.
        max_parameters: Most weights that the model may have, or None; a larger one is refused.
        batch_tokens: Most source and most target tokens of a batch with its padding, all replicas
            together.
        accumulate_steps: Batches whose gradients make one update.
        schedule: `"transformer"`, `"inverse_square_root"`, `"cosine"` or `"constant"`.
        learning_rate: Peak of the schedule; factor on the paper's formula for `"transformer"`.
        warmup_steps: Updates with a rising learning rate.
        learning_rate_floor: Last learning rate of `"cosine"`.
        class_weights: `"balanced"` to weight the loss of each label by the inverse of its frequency
            in the training data, so that all labels count equally; by default all examples do.
        thresholds: `"f1"` to choose, for several labels a text, the probability from which on each
            label is predicted by its F1 on the validation texts; 0.5 by default.
        ranking_loss: `"listwise"` to learn which passage of a list is the relevant one, or
            `"pointwise"` to learn the relevance of each for itself; by default lists, if at least
            half of the queries have passages of different relevance or no relevances are given.
        label_smoothing: Fraction of the target probability spread over the vocabulary, in [0, 1).
        consistency: Weight of R-Drop (Wu et al. 2021, alpha in equation 4): every row passes twice
            under different dropout, and the divergence of the two predictions is added to the
            loss. An update costs twice the time and memory; 0 turns it off.
        clip_norm: Largest norm of the whole gradient; 0 turns clipping off.
        optimizer: `"adam"`, or `"muon"` (Jordan et al. 2024; Liu et al. 2025): matrices move along
            the orthogonalized momentum of their gradients, embeddings and vectors by Adam. It
            needs a larger `learning_rate` than Adam's, 3e-3 or 4e-3 where Adam has 1e-3.
        beta_1: Adam's decay of the first moment.
        beta_2: Adam's decay of the second moment.
        epsilon: Adam's epsilon.
        weight_decay: Decoupled decay of matrices (not of biases or norms); 0 turns it off.
        ema_decay: Decay of a moving average of the weights, such as 0.999, which validations, the
            best and the last model then have instead of the weights themselves; 0 for none.
        seed: Seed of the data order; to be given to `keras.utils.set_random_seed` before the model
            is built, for its weights and dropout.
        precision: Keras dtype policy; set before the model is built.
        jit: Compile the gradient with XLA: `"on"`, `"off"`, or `"auto"` (off on a CPU, on with a
            GPU). A TPU always compiles.
        strategy: `"one"` device, `"mirrored"` devices of one machine, `"multi_worker"` (the
            processes of TF_CONFIG), `"tpu"` (all cores of the TPU that TPU_NAME names, or of this
            machine), or `"auto"` (all GPUs).
        cpu_shards: Number of shards of a batch that CPU cores compute in parallel; 0 for one per
            core, at most four, when `keras-attn train` runs on one CPU without XLA, else 1.
        join_timeout: Seconds that workers wait for each other at the start.
        heartbeat_timeout: Seconds without a heartbeat after which a worker is lost.
        deterministic: Ask TensorFlow for deterministic operations (for the whole process).
        validate_every: Updates between validations; 0 for the end of each epoch.
        metric: Name of the validation value that chooses the best model, such as `"loss"`,
            `"perplexity"`, `"per"` or `"bleu"`; of equal values that of the lower loss is better.
        metric_goal: `"min"`, `"max"`, or `"auto"` (by the metric's name).
        patience: Validations without improvement after which training stops; 0 for never.
        keep_checkpoints: Checkpoints made at validations to keep (at least `average_last`).
        average_last: Number of the last of these to average at the end; 0 for none.
        freeze: Patterns such as `"embedding/*"` or `"block_[01]/*"`: weights whose path matches
            one stay as they are (see `keras_attn.training.loop.freezing`).
        checkpoint_every: Updates between extra checkpoints; 0 for none.
        checkpoint_minutes: Minutes between extra checkpoints; 0 for none.
        log_every: Updates between rows of metrics.csv, besides those of validations; 0 for none.

    Examples:
        >>> settings = TrainingSettings(epochs=3, batch_tokens=2048, schedule="cosine")
        >>> settings.total_steps(batches=100)
        300
        >>> TrainingSettings.from_dict({"learning_rat": 0.01})
        Traceback (most recent call last):
            ...
        keras_attn.validation.UserError: There is no training setting `learning_rat`. Did ...
    """

    epochs: int | None = 10
    steps: int | None = None
    min_steps: int = 0
    max_minutes: float | None = None
    max_parameters: int | None = None
    batch_tokens: int = 4096
    accumulate_steps: int = 1
    schedule: str = "inverse_square_root"
    learning_rate: float = 1e-3
    warmup_steps: int = 1000
    learning_rate_floor: float = 0.0
    class_weights: str | None = None
    thresholds: str | None = None
    ranking_loss: str | None = None
    label_smoothing: float = 0.1
    consistency: float = 0.0
    clip_norm: float = 1.0
    optimizer: str = "adam"
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    ema_decay: float = 0.0
    seed: int = 1
    precision: str = "float32"
    jit: str = "auto"
    strategy: str = "auto"
    cpu_shards: int = 0
    join_timeout: float = 300.0
    heartbeat_timeout: float = 10.0
    deterministic: bool = True
    validate_every: int = 0
    metric: str = "loss"
    metric_goal: str = "auto"
    patience: int = 0
    keep_checkpoints: int = 2
    average_last: int = 0
    freeze: list[str] = dataclasses.field(default_factory=list)
    checkpoint_every: int = 0
    checkpoint_minutes: float = 10.0
    log_every: int = 100

    def __post_init__(self) -> None:
        check_types(self)
        require(
            self.epochs is not None or self.steps is not None,
            "`epochs` or `steps` must be given.",
            epochs=self.epochs,
            steps=self.steps,
        )
        for name in ("label_smoothing", "beta_1", "beta_2", "ema_decay"):
            require_rate(**{name: getattr(self, name)})
        check_numbers(self, positive=_POSITIVE, above_zero=_ABOVE_ZERO)
        require(
            self.cpu_shards <= _MOST_SHARDS,
            f"`cpu_shards` must be at most {_MOST_SHARDS}.",
            cpu_shards=self.cpu_shards,
        )
        for name, value in vars(self).items():
            negative = isinstance(value, int | float) and value < 0
            require(not negative, f"`{name}` must be at least 0.", **{name: value})
        for name, choices in _CHOICES.items():
            require_one_of(name, getattr(self, name), choices)
        if self.class_weights is not None:
            require_one_of("class_weights", self.class_weights, ("balanced",))
        if self.thresholds is not None:
            require_one_of("thresholds", self.thresholds, ("f1",))
        if self.ranking_loss is not None:
            require_one_of("ranking_loss", self.ranking_loss, ("listwise", "pointwise"))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingSettings":
        """Makes settings from plain values, as in a YAML file or on the command line.

        Raises:
            UserError: An unknown name (the nearest one is suggested), a value of the wrong type
                or out of range.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in names and name not in RENAMED_SETTINGS:
                near = difflib.get_close_matches(str(name), names, n=1)
                hint = f" Did you mean `{near[0]}`?" if near else ""
                raise UserError(
                    f"There is no training setting `{name}`.{hint} "
                    f"Received: {name}={values[name]!r}."
                )
        return cls(**values)

    def total_steps(self, batches: int) -> int:
        """Counts the updates of a run, as far as epochs and numbers of steps limit them.

        Args:
            batches: Batches of an epoch.

        Raises:
            UserError: There is no batch.
        """
        require(batches > 0, "There must be at least one training example.", batches=batches)
        limits = [self.steps] if self.steps is not None else []
        if self.epochs is not None:
            updates = self.epochs * math.ceil(batches / self.accumulate_steps)
            limits.append(max(updates, self.min_steps))
        return min(limits)

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain values; `from_dict` makes equal settings of them."""
        return dataclasses.asdict(self)
