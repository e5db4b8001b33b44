"""Held-out data and their metrics."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.data.examples.base import Examples
from keras_attn.training.loop.step import make_evaluation_step
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import LOSS_VALUES, SUMS, means, named
from keras_attn.training.workers.strategy import distributed_batches
from keras_attn.validation import require


@dataclass(frozen=True)
class ValidationSet:
    """The data and metrics that choose the best weights of a run.

    Attributes:
        examples: Tokenized examples for the loss per token, or `None`.
        decode_metrics: Returns further values by name, such as `{"per": 7.5}`, of the model as it
            is when called; or `None`.
        final_metrics: Returns the same values of more texts, if `decode_metrics` uses only some; a
            run uses it at its end to choose between the best and the averaged weights. Or `None`.
        samples: Returns a few texts as (source, reference, prediction); or `None`.
        loss: Loss of these examples, as for `TrainingStep`; that of the training if `None`.
        start_gain: By what fraction of their value later weights must be better than those before
            the first update, if these are a choice as well; or `None`.

    Examples:
        >>> task = Task.load("saved_models/g2p_en")
        >>> pairs = Pairs(["cat", "dog"], ["K AE T", "D AO G"])
        >>> examples = PairExamples.from_pairs(pairs, task.source_tokenizer, task.target_tokenizer)
        >>> validation = ValidationSet(examples, lambda: measure(task, pairs, ["per", "wer"]))
        >>> validation.decode_metrics()
        {'items': 2, 'per': 0.0, 'wer': 0.0}
    """

    examples: Any = None
    decode_metrics: Callable[[], dict[str, float]] | None = None
    final_metrics: Callable[[], dict[str, float]] | None = None
    samples: Callable[[], list[tuple[str, str, str]]] | None = None
    loss: Callable | None = None
    start_gain: float | None = None

    def __post_init__(self) -> None:
        if self.examples is not None:
            require_examples(examples=self.examples)


def require_examples(**given: Any) -> None:
    """Raises unless data are examples that can be put into batches (data named by keyword)."""
    for name, data in given.items():
        require(
            isinstance(data, Examples),
            f"`{name}` must be examples from `keras_attn.data`, which the trainer itself puts into "
            "batches. A `tf.data.Dataset` is for `fit` of `task.backbone`, a Keras model.",
            **{name: type(data).__name__},
        )


class Validator:
    """Measures a model on a validation set.

    Args:
        validation: The set; a callable counts as its `decode_metrics`.
        model: The model.
        strategy: The strategy that the model was built under.
        loss: As for `TrainingStep`.
        settings: The settings of the training.
        static_shapes: Whether batches have few shapes, each a compiled program of its own.
        loss_values: Names of those of the loss, nll, accuracy and perplexity that are reported.
    """

    def __init__(
        self,
        validation: ValidationSet | Callable[[], dict[str, float]],
        model: keras.Model,
        strategy: tf.distribute.Strategy,
        loss: Callable,
        settings: TrainingSettings,
        static_shapes: bool = False,
        loss_values: Sequence[str] = LOSS_VALUES,
    ) -> None:
        self._loss_values = loss_values
        if not isinstance(validation, ValidationSet):
            validation = ValidationSet(decode_metrics=validation)
        self._validation = validation
        self._strategy = strategy
        self._evaluate = make_evaluation_step(
            model, strategy, validation.loss or loss, settings.label_smoothing, static_shapes
        )
        self._plan = None
        if validation.examples is not None:
            self._plan = plan_epoch(
                validation.examples, settings.batch_tokens, seed=None, static_shapes=static_shapes
            )

    @property
    def start_gain(self) -> float | None:
        """How much better than those before the first update weights must be, if those count."""
        return self._validation.start_gain

    @property
    def has_final(self) -> bool:
        """Whether the end of a run is measured on more texts than its validations."""
        return self._validation.final_metrics is not None

    def samples(self) -> list[tuple[str, str, str]]:
        """A few texts as (source, reference, prediction)."""
        return self._validation.samples() if self._validation.samples else []

    def measure(
        self, final: bool = False, show: Callable[[str], None] = lambda what: None
    ) -> dict[str, float]:
        """Values by name: loss, nll, accuracy and perplexity per token, and decoded metrics.

        Args:
            final: Whether to use `final_metrics`.
            show: Called with how far it is.
        """
        values = {}
        if self._plan is not None:
            totals = np.zeros(len(SUMS))
            batches = distributed_batches(self._strategy, self._validation.examples, self._plan)
            for number, batch in enumerate(batches, 1):
                totals += self._evaluate(batch).numpy()
                show(f"loss of {number:,} of {len(self._plan):,} batches")
            values = means(dict(zip(SUMS, totals.tolist(), strict=True)))
            values["perplexity"] = math.exp(min(values["nll"], 700.0))
            values = named(values, self._loss_values)
        decode = self._validation.decode_metrics
        if final and self.has_final:
            decode = self._validation.final_metrics
        if decode is not None:
            show("predicting")
            values |= {name: float(value) for name, value in decode().items()}
        return values
