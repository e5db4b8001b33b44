"""Cross-entropy over tokens: integer labels, label smoothing, padding ignored."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.ops.custom_gradient import custom_gradient
from keras_attn.ops.softmax import softmax_with_sums
from keras_attn.validation import require_rate

PADDING_ID = 0


@keras.saving.register_keras_serializable("keras_attn")
class TokenCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, averaged over the real tokens of a batch.

    A label of 0 is padding and counts for nothing. The target distribution gives
    `1 - label_smoothing` to the label and spreads `label_smoothing` evenly over the vocabulary.
    Computed in float32 or wider, whatever the dtype of the logits.

    Args:
        label_smoothing: Share of the probability spread over the vocabulary, in [0, 1).
        reduction: `"sum_over_batch_size"` (mean over real tokens), `"sum"` or `"none"` (one value
            a token).
        name: Name of the loss.
        dtype: Dtype or policy that Keras records; computation is at least float32.

    Call arguments:
        y_true: Labels, integer (batch, length).
        y_pred: Logits, floating (batch, length, vocabulary).
        sample_weight: Optional weights, (batch,) or (batch, length).

    Returns:
        A scalar, or (batch, length) with `reduction="none"`, float32 (float64 for float64 logits).

    Raises:
        UserError: `label_smoothing` is not in [0, 1).

    Reference: Szegedy et al. 2016, Rethinking the Inception Architecture, section 7.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str = "sum_over_batch_size",
        name: str = "token_cross_entropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        require_rate(label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Computes the loss; see the class."""
        # The base class would cast labels and logits to floats and divide by padding as well.
        losses = self.call(y_true, y_pred)
        if sample_weight is not None:
            sample_weight = ops.cast(sample_weight, losses.dtype)
            if len(sample_weight.shape) == 1:
                sample_weight = ops.expand_dims(sample_weight, -1)
            losses = losses * sample_weight
        if self.reduction in ("none", None):
            return losses
        total = ops.sum(losses)
        if self.reduction == "sum":
            return total
        count = ops.sum(ops.cast(ops.not_equal(y_true, PADDING_ID), losses.dtype))
        return total / ops.maximum(count, 1)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One loss a token, 0 at padding: (batch, length)."""
        labels = ops.cast(y_true, "int32")
        losses, _, _ = _losses_per_token(labels, y_pred, self.label_smoothing)
        return losses

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
            "dtype": self.dtype,
        }


def token_cross_entropy(
    labels: Any, logits: Any, label_smoothing: float = 0.0
) -> tuple[Any, Any, Any, Any]:
    """Sums of the cross-entropy over the real tokens of a batch.

    Args:
        labels: Integer, (batch, length); 0 is padding.
        logits: Floating, (batch, length, vocabulary).
        label_smoothing: Share of the probability spread over the vocabulary, in [0, 1).

    Returns:
        Four scalars, float32 (float64 for float64 logits): the smoothed loss, the negative
        log-likelihood of the labels, the number of real tokens, and the number of those whose
        label has the largest logit (a tie counts as right).
    """
    labels = ops.cast(labels, "int32")
    losses, nll, correct = _losses_per_token(labels, logits, label_smoothing)
    count = ops.sum(ops.cast(ops.not_equal(labels, PADDING_ID), losses.dtype))
    return ops.sum(losses), ops.sum(nll), count, ops.sum(correct)


def _losses_per_token(labels: Any, logits: Any, label_smoothing: float) -> tuple[Any, Any, Any]:
    """Smoothed loss, negative log-likelihood and correctness of each token, 0 at padding."""
    if keras.backend.standardize_dtype(logits.dtype) != "float64":
        logits = ops.cast(logits, "float32")
    vocabulary = logits.shape[-1]
    shape = ops.shape(labels)
    flat_labels = ops.reshape(labels, (-1,))  # (tokens,)
    flat_logits = ops.reshape(logits, (-1, vocabulary))  # (tokens, vocabulary)
    losses, nll, correct = _smoothed_cross_entropy(flat_labels, flat_logits, label_smoothing)
    real = ops.not_equal(flat_labels, PADDING_ID)
    zeros = ops.zeros_like(losses)
    return tuple(
        ops.reshape(ops.where(real, values, zeros), shape) for values in (losses, nll, correct)
    )


def _smoothed_cross_entropy(labels: Any, logits: Any, smoothing: float) -> tuple[Any, Any, Any]:
    """(tokens,), (tokens, vocabulary) -> loss, nll and correctness of each token.

    Only the loss carries a gradient. It is written out: softmax minus the smoothed target, one
    array of the logits' size, where automatic differentiation would add up one for each use.
    """
    vocabulary = logits.shape[-1]

    @custom_gradient
    def losses_of(logits: Any) -> tuple[Any, Callable]:
        probabilities, largest, total = softmax_with_sums(logits)
        largest = ops.squeeze(largest, axis=-1)
        log_total = largest + ops.log(ops.squeeze(total, axis=-1))
        target = ops.squeeze(
            ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), axis=-1
        )
        losses = log_total - (1 - smoothing) * target
        if smoothing:
            losses = losses - smoothing * ops.mean(logits, axis=-1)
        correct = ops.cast(ops.greater_equal(target, largest), logits.dtype)

        def gradient(upstream: Any, *_: Any) -> Any:
            column = ops.expand_dims(upstream, -1)
            spread = smoothing / vocabulary
            grad = probabilities * column
            if smoothing:
                grad = grad - spread * column
            at_label = (ops.exp(target - log_total) - spread - (1 - smoothing)) * upstream
            rows = ops.arange(ops.shape(labels)[0], dtype="int32")
            return ops.scatter_update(grad, ops.stack([rows, labels], axis=1), at_label)

        return (losses, log_total - target, correct), gradient

    return losses_of(logits)
