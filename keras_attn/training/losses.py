"""Cross-entropy over tokens as a loss of Keras."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.cross_entropy import PADDING_ID, losses_per_label
from keras_attn.validation import require_rate


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
        losses, _, _ = losses_per_label(labels, y_pred, self.label_smoothing)
        return losses

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
            "dtype": self.dtype,
        }
