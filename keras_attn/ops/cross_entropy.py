"""Cross-entropy of integer labels: label smoothing, padding ignored."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.ops.adding import add_at
from keras_attn.ops.autodiff import custom_gradient, wait_for
from keras_attn.ops.known_values import known_values
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor
from keras_attn.validation import require

PADDING_ID = 0
# What Hugging Face's data collators and torch write where a label counts for nothing.
IGNORED_LABEL = -100


def token_cross_entropy(
    labels: Tensor,
    logits: Tensor,
    label_smoothing: float = 0.0,
    first_label: int = 0,
    class_weights: Sequence[float] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Sums of the cross-entropy over the labels of a batch that are no padding.

    Args:
        labels: Integer, of any shape, such as (batch, length) for tokens or (batch,) for classes;
            0 is padding.
        logits: Floating, that shape and (vocabulary,) after it.
        label_smoothing: Fraction of the probability to spread over the vocabulary, in [0, 1).
        first_label: Label of the first column of the logits; 1 where padding has none.
        class_weights: Factor of the loss of each label, in the order of the columns.

    Returns:
        Four scalars, float32 (float64 for float64 logits): the smoothed loss, the negative
        log-likelihood of the labels, the number of labels that are no padding, and the number of
        those that have the largest logit (a tie counts as right).

    Raises:
        UserError: A label has no column among the logits. While a graph is traced, where labels
            cannot be seen, the loss and the log-likelihood are NaN instead.
    """
    losses, nll, correct = losses_per_label(labels, logits, label_smoothing, first_label)
    real = counts(labels)
    if class_weights is not None:
        columns = ops.where(real, ops.cast(labels, "int32") - first_label, 0)
        losses = losses * ops.take(ops.convert_to_tensor(class_weights, losses.dtype), columns)
    count = ops.sum(ops.cast(real, losses.dtype))
    return ops.sum(losses), ops.sum(nll), count, ops.sum(correct)


def counts(labels: Tensor, ignore_id: int = PADDING_ID) -> Tensor:
    """Finds the labels that count: neither `ignore_id` nor -100."""
    labels = ops.cast(labels, "int32")
    return ops.not_equal(labels, ignore_id) & ops.not_equal(labels, IGNORED_LABEL)


def have_columns(
    labels: Tensor, vocabulary: int, first_label: int = 0, ignore_id: int = PADDING_ID
) -> Tensor:
    """Finds the labels that have a column among the logits.

    Args:
        labels: int32, of any shape.
        vocabulary: Number of columns.
        first_label: Label of the first one.
        ignore_id: The label that counts for nothing.

    Returns:
        Boolean, of the same shape.

    Raises:
        UserError: A label that counts has none.
    """
    known = known_values(labels)
    if known is not None:
        last = first_label + vocabulary - 1
        ignored = (known == ignore_id) | (known == IGNORED_LABEL)
        others = known[~ignored & ((known < first_label) | (known > last))]
        require(
            not others.size,
            f"Labels must be in [{first_label}, {last}], or {ignore_id} or {IGNORED_LABEL} where "
            "they are ignored.",
            labels=np.unique(others)[:3].tolist(),
        )
    return ops.logical_and(labels >= first_label, labels < first_label + vocabulary)


def losses_per_label(
    labels: Tensor,
    logits: Tensor,
    label_smoothing: float = 0.0,
    first_label: int = 0,
    ignore_id: int = PADDING_ID,
) -> tuple[Any, Any, Any]:
    """Smoothed loss, negative log-likelihood and correctness of each label, 0 at padding.

    The arguments are those of `token_cross_entropy`, but for `ignore_id`, the label of
    padding; each result has the shape of the labels.
    """
    labels = ops.cast(labels, "int32")
    if keras.backend.standardize_dtype(logits.dtype) != "float64":
        logits = ops.cast(logits, "float32")
    vocabulary = logits.shape[-1]
    shape = ops.shape(labels)
    flat_labels = ops.reshape(labels, (-1,))  # (labels,)
    flat_logits = ops.reshape(logits, (-1, vocabulary))  # (labels, vocabulary)
    real = counts(flat_labels, ignore_id)
    columns = flat_labels - first_label if first_label else flat_labels
    exists = have_columns(flat_labels, vocabulary, first_label, ignore_id)
    columns = ops.where(exists, columns, 0)
    losses, nll, correct = _smoothed_cross_entropy(columns, flat_logits, label_smoothing)
    losses, nll = (ops.where(exists, x, float("nan")) for x in (losses, nll))
    correct = ops.where(exists, correct, 0.0)
    zeros = ops.zeros_like(losses)
    return tuple(
        ops.reshape(ops.where(real, values, zeros), shape) for values in (losses, nll, correct)
    )


def _smoothed_cross_entropy(
    labels: Tensor, logits: Tensor, smoothing: float
) -> tuple[Any, Any, Any]:
    """(labels,), (labels, vocabulary) -> loss, nll and correctness of each label.

    Only the loss carries a gradient. It is written out: softmax minus the smoothed target, one
    array of the logits' size, where automatic differentiation would add up one for each use.
    """
    vocabulary = logits.shape[-1]

    @custom_gradient
    def losses_of(logits: Tensor) -> tuple[Any, Callable]:
        target = ops.squeeze(
            ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), axis=-1
        )
        largest = ops.max(logits, axis=-1, initial=MASKED_SCORE)
        losses = -(1 - smoothing) * target
        if smoothing:
            losses = losses - smoothing * ops.mean(logits, axis=-1)
        # The softmax comes last: it takes the place of the logits in memory then.
        (last,) = wait_for([logits], [losses, largest])
        probabilities = softmax(last)
        log_total = largest - ops.log(ops.max(probabilities, axis=-1, initial=0.0))
        losses = losses + log_total
        correct = ops.cast(ops.greater_equal(target, largest), logits.dtype)

        def gradient(upstream: Tensor, *_: Any) -> Tensor:
            column = ops.expand_dims(upstream, -1)
            grad = probabilities * column
            if smoothing:
                grad = grad - smoothing / vocabulary * column
            rows = ops.arange(ops.shape(labels)[0], dtype="int32")
            return add_at(grad, rows, labels, (smoothing - 1) * upstream)

        return (losses, log_total - target, correct), gradient

    return losses_of(logits)
