"""Cross-entropy, accuracy and perplexity over tokens, as a loss and metrics of Keras."""

import numbers
from typing import Any

import keras
from keras import ops

from keras_attn.ops.cross_entropy import PADDING_ID, counts, have_columns, losses_per_label
from keras_attn.ops.known_values import fail_where_false
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_rate


@keras.saving.register_keras_serializable("keras_attn")
class TokenCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, averaged over the real tokens of a batch.

    A label of 0 (`ignore_id`) is padding and ignored, and so is -100. The target
    distribution gives `1 - label_smoothing` to the label and spreads `label_smoothing` evenly over
    the vocabulary. Computed in float32 or wider, whatever the dtype of the logits.

    Args:
        label_smoothing: Fraction of the probability spread over the vocabulary, in [0, 1).
        reduction: `"sum_over_batch_size"` or `"mean"` (mean over real tokens), `"sum"`,
            `"mean_with_sample_weight"` (divided by the sum of the real tokens' weights) or `"none"`
            (one value a token).
        ignore_id: The label that is ignored, besides -100. Unless it is 0, 0 is a label like the
            others.
        name: Name of the loss.
        dtype: Dtype or policy that Keras records; computation is at least float32.

    Call arguments:
        y_true: Labels, integer (batch, length).
        y_pred: Logits, floating (batch, length, vocabulary).
        sample_weight: Optional weights, (batch,) or (batch, length).

    Returns:
        A scalar, or (batch, length) with `reduction="none"`, float32 (float64 for float64 logits).

    Raises:
        UserError: `label_smoothing` is not in [0, 1), `ignore_id` is no whole number, or a label is
            neither ignored nor in [0, vocabulary). In a graph, as in `fit`, TensorFlow raises an
            `InvalidArgumentError` that says so; where XLA compiles it the loss is NaN.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> loss = TokenCrossEntropy(label_smoothing=0.1)
        >>> model.compile("adam", loss, metrics=[TokenAccuracy(), Perplexity()])
        >>> labels = np.array([[5, 7, 0]])  # 0 is padding
        >>> round(float(loss(labels, np.zeros((1, 3, 11), "float32"))), 4)  # ln 11
        2.3979

    Reference: Szegedy et al. 2016, Rethinking the Inception Architecture, section 7.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str = "sum_over_batch_size",
        ignore_id: int = PADDING_ID,
        name: str = "token_cross_entropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        require_rate(label_smoothing=label_smoothing)
        require_whole(ignore_id=ignore_id)
        self.label_smoothing = label_smoothing
        self.ignore_id = int(ignore_id)

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor = None) -> Any:
        """Computes the loss; see the class."""
        # The base class would cast labels and logits to floats and divide by padding as well.
        losses = self.call(y_true, y_pred)
        weights = real = real_tokens(y_true, self.ignore_id, losses.dtype)
        if sample_weight is not None:
            weights = weighted(real, sample_weight)
            losses = ops.multiply(losses, weights)
        if self.reduction in ("none", None):
            return losses
        total = ops.sum(losses)
        if self.reduction == "sum":
            return total
        if self.reduction != "mean_with_sample_weight":
            return total / ops.maximum(ops.sum(real), 1)
        return ops.divide_no_nan(total, ops.sum(weights))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """One loss a token, 0 at padding: (batch, length)."""
        labels = ops.cast(y_true, "int32")
        require_columns(labels, y_pred, self.ignore_id)
        losses, _, _ = losses_per_label(
            labels, y_pred, self.label_smoothing, ignore_id=self.ignore_id
        )
        return losses

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
            "ignore_id": self.ignore_id,
            "dtype": self.dtype,
        }


class _TokenMean(keras.metrics.Mean):
    """The mean of a value of each real token, over all batches."""

    def __init__(self, ignore_id: int = PADDING_ID, name: str | None = None, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        require_whole(ignore_id=ignore_id)
        self.ignore_id = int(ignore_id)

    def _values(self, labels: Tensor, logits: Tensor) -> Any:
        """A value for each label, (batch, length)."""
        raise NotImplementedError

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor = None) -> None:
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

    Examples:
        >>> metric = TokenAccuracy()
        >>> metric.update_state([[1, 2, 0]], [[[0., 1, 0], [0, 1, 0], [1, 0, 0]]])
        >>> float(metric.result())
        0.5
    """

    def __init__(
        self, ignore_id: int = PADDING_ID, name: str = "token_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(ignore_id, name, dtype)

    def _values(self, labels: Tensor, logits: Tensor) -> Any:
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

    Examples:
        >>> metric = Perplexity()
        >>> metric.update_state([[1, 2, 0]], [[[0., 0, 0], [0, 0, 0], [9, 0, 0]]])
        >>> round(float(metric.result()), 3)
        3.0
    """

    def __init__(
        self, ignore_id: int = PADDING_ID, name: str = "perplexity", dtype: Any = None
    ) -> None:
        super().__init__(ignore_id, name, dtype)

    def _values(self, labels: Tensor, logits: Tensor) -> Any:
        return losses_per_label(labels, logits, ignore_id=self.ignore_id)[1]

    def result(self) -> Any:
        """The perplexity of all batches since the last reset, 1 without a token."""
        return ops.exp(super().result())


def require_whole(**received: Any) -> None:
    """Raises unless every value is a whole number (numbers named by keyword)."""
    for name, value in received.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        require(whole, f"`{name}` must be a whole number.", **{name: value})


def real_tokens(labels: Tensor, ignore_id: int, dtype: Any) -> Any:
    """Returns 1 for each label that counts and 0 for those that are ignored."""
    return ops.cast(counts(labels, ignore_id), dtype)


def weighted(real: Any, sample_weight: Tensor) -> Any:
    """Weighs tokens.

    Args:
        real: Floating (batch, length).
        sample_weight: Weights (batch,) or (batch, length).

    Returns:
        Floating (batch, length).
    """
    sample_weight = ops.cast(sample_weight, real.dtype)
    if len(sample_weight.shape) == 1:
        sample_weight = ops.expand_dims(sample_weight, -1)
    return ops.multiply(real, sample_weight)


def require_columns(labels: Tensor, logits: Tensor, ignore_id: int) -> Any:
    """Raises for labels that count and have no column in the logits.

    Args:
        labels: int32 (batch, length).
        logits: Floating (batch, length, vocabulary).
        ignore_id: The label that is ignored.

    Returns:
        Whether each label is valid, boolean (batch, length). In a graph of TensorFlow the failure
        comes when it runs, unless XLA compiled it.

    Raises:
        UserError: A label is neither ignored nor in [0, vocabulary).
    """
    vocabulary = logits.shape[-1]
    right = have_columns(labels, vocabulary, ignore_id=ignore_id) | ~counts(labels, ignore_id)
    fail_where_false(
        ops.all(right), f"Labels must be in [0, {vocabulary - 1}], or {ignore_id} or -100."
    )
    return right
