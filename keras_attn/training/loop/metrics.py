"""Keras metrics over tokens, without padding."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.cross_entropy import PADDING_ID, losses_per_label
from keras_attn.training.loop.token_weights import (
    real_tokens,
    require_columns,
    require_whole,
    weighted,
)


class _TokenMean(keras.metrics.Mean):
    """The mean of a value of each real token, over all batches."""

    def __init__(self, ignore_id: int = PADDING_ID, name: str | None = None, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        require_whole(ignore_id=ignore_id)
        self.ignore_id = int(ignore_id)

    def _values(self, labels: Any, logits: Any) -> Any:
        """A value for each label, (batch, length)."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Counts the tokens of a batch; see the class."""
        labels, logits = ops.cast(y_true, "int32"), ops.convert_to_tensor(y_pred)
        right = require_columns(labels, logits, self.ignore_id)
        values = ops.where(right, self._values(labels, logits), float("nan"))
        weights = real_tokens(y_true, self.ignore_id, self.dtype)
        if sample_weight is not None:
            weights = weighted(weights, sample_weight)
        super().update_state(values, sample_weight=weights)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return super().get_config() | {"ignore_id": self.ignore_id}


@keras.saving.register_keras_serializable("keras_attn")
class TokenAccuracy(_TokenMean):
    """Fraction of the real tokens whose label has the largest logit.

    `metrics=["accuracy"]` counts padding as well.

    Args:
        ignore_id: The label that is ignored, besides -100; 0 (padding) by default.
        name: Name of the metric.
        dtype: Dtype of the metric's sums.

    Call arguments:
        y_true: Labels, integer (batch, length).
        y_pred: Logits or probabilities, floating (batch, length, vocabulary).
        sample_weight: Optional weights, (batch,) or (batch, length).

    Raises:
        UserError: A label is neither ignored nor in [0, vocabulary). In a graph, as in `fit`,
            TensorFlow raises an `InvalidArgumentError` that says so; where XLA compiles it the
            metric is NaN.

    Example:
        >>> metric = TokenAccuracy()
        >>> metric.update_state([[1, 2, 0]], [[[0., 1, 0], [0, 1, 0], [1, 0, 0]]])
        >>> float(metric.result())
        0.5
    """

    def __init__(
        self, ignore_id: int = PADDING_ID, name: str = "token_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(ignore_id, name, dtype)

    def _values(self, labels: Any, logits: Any) -> Any:
        return ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), self.dtype)


@keras.saving.register_keras_serializable("keras_attn")
class Perplexity(_TokenMean):
    """Exponential of the mean negative log-likelihood of the real tokens.

    Args:
        ignore_id: The label that is ignored, besides -100; 0 (padding) by default.
        name: Name of the metric.
        dtype: Dtype of the metric's sums.

    Call arguments:
        y_true: Labels, integer (batch, length).
        y_pred: Logits, floating (batch, length, vocabulary).
        sample_weight: Optional weights, (batch,) or (batch, length).

    Raises:
        UserError: A label is neither ignored nor in [0, vocabulary). In a graph, as in `fit`,
            TensorFlow raises an `InvalidArgumentError` that says so; where XLA compiles it the
            metric is NaN.

    Example:
        >>> metric = Perplexity()
        >>> metric.update_state([[1, 2, 0]], [[[0., 0, 0], [0, 0, 0], [9, 0, 0]]])
        >>> round(float(metric.result()), 3)
        3.0
    """

    def __init__(
        self, ignore_id: int = PADDING_ID, name: str = "perplexity", dtype: Any = None
    ) -> None:
        super().__init__(ignore_id, name, dtype)

    def _values(self, labels: Any, logits: Any) -> Any:
        return losses_per_label(labels, logits, ignore_id=self.ignore_id)[1]

    def result(self) -> Any:
        """The perplexity of all batches since the last reset, 1 without a token."""
        return ops.exp(super().result())
