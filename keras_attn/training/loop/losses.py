"""Cross-entropy over tokens as a loss of Keras."""

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
from keras_attn.validation import require_rate


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

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
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

    def call(self, y_true: Any, y_pred: Any) -> Any:
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
