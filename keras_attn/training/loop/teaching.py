"""Soft targets of teachers in the training step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from keras_attn.ops.cross_entropy import counts


@dataclass(frozen=True)
class Teaching:
    """Computes the targets of teachers for a batch, and the loss of a student by them.

    Attributes:
        teachers: Functions from the inputs and labels of a batch to targets, tensors of one shape,
            which are averaged.
        loss: `loss(labels, outputs, targets)` -> its sum over what the labels count.
        weight: Weight of this loss, in (0, 1]; the loss by the labels has the rest.

    Examples:
        >>> def sure(inputs, labels):
        ...     return tf.constant([[1.0, 0.0]])
        >>> def unsure(inputs, labels):
        ...     return tf.constant([[0.5, 0.5]])
        >>> teaching = Teaching([sure, unsure], soft_cross_entropy, weight=0.5)
        >>> labels = tf.constant([1])
        >>> targets = teaching.targets({}, labels)
        >>> targets.numpy().tolist()
        [[0.75, 0.25]]
        >>> student = tf.math.log(targets)
        >>> float(teaching.mixed(tf.constant(3.0), labels, student, targets))
        1.5

    References:
        [Hinton et al., 2015](https://arxiv.org/abs/1503.02531), section 2;
        [Kim and Rush, 2016](https://arxiv.org/abs/1606.07947), section 3.1.
    """

    teachers: Sequence[Callable]
    loss: Callable
    weight: float

    def targets(self, inputs: Any, labels: tf.Tensor) -> tf.Tensor:
        """Averages the targets of all teachers; no gradient passes."""
        found = [teacher(inputs, labels) for teacher in self.teachers]
        return tf.stop_gradient(tf.add_n(found) / len(found))

    def mixed(
        self, loss: tf.Tensor, labels: tf.Tensor, outputs: tf.Tensor, targets: tf.Tensor
    ) -> tf.Tensor:
        """Adds the loss by the teachers to that by the labels.

        Args:
            loss: Sum of the loss by the labels.
            labels: Labels of the batch.
            outputs: Outputs of the student.
            targets: What `targets` returned.
        """
        taught = tf.cast(self.loss(labels, outputs, targets), loss.dtype)
        if self.weight == 1:  # the labels may be of no use
            return taught
        return (1 - self.weight) * loss + self.weight * taught


def soft_cross_entropy(
    labels: tf.Tensor, logits: tf.Tensor, probabilities: tf.Tensor, temperature: float = 1.0
) -> tf.Tensor:
    """Sums the divergence of a student from soft targets over the labels that are no padding.

    Its gradient is that of the cross-entropy of the soft targets, and it is 0 where the student is
    equal to them. Multiplied by the square of the temperature, it weighs as much at any.

    Args:
        labels: Integer, of any shape; 0 is padding.
        logits: Floating, that shape and (columns,) after it.
        probabilities: Soft targets at this temperature, of the shape of the logits; they may have
            fewer columns, those of the others are 0.
        temperature: Value by which the logits are divided.

    Returns:
        A scalar, float32 (float64 for float64 logits): the sum of T² KL(p‖q), in nats.

    Examples:
        >>> logits = tf.math.log([[0.5, 0.5], [0.9, 0.1]])
        >>> targets = tf.constant([[1.0, 0.0], [0.1, 0.9]])
        >>> round(float(soft_cross_entropy(tf.constant([2, 0]), logits, targets)), 4)  # ln 2
        0.6931
    """
    probabilities = tf.cast(probabilities, _wide(logits))
    log_q = tf.nn.log_softmax(tf.cast(logits, probabilities.dtype) / temperature)
    log_q = log_q[..., : probabilities.shape[-1]]
    divergence = tf.reduce_sum(
        tf.math.xlogy(probabilities, probabilities) - probabilities * log_q, axis=-1
    )
    return temperature**2 * _sum_where(counts(labels), divergence)


def soft_binary_cross_entropy(
    labels: tf.Tensor, logits: tf.Tensor, probabilities: tf.Tensor, temperature: float = 1.0
) -> tf.Tensor:
    """Sums the divergence of decisions from soft targets (see `soft_cross_entropy`).

    Args:
        labels: Integer (..., labels); 0 is padding.
        logits: Floating, of that shape; a sigmoid makes probabilities of them.
        probabilities: Soft targets at this temperature, of that shape.
        temperature: Value by which the logits are divided.

    Examples:
        >>> logits, targets = tf.constant([[0.0, 0.0]]), tf.constant([[1.0, 0.5]])
        >>> round(float(soft_binary_cross_entropy(tf.constant([[2, 1]]), logits, targets)), 4)
        0.6931
    """
    yes = tf.cast(probabilities, _wide(logits))
    logits = tf.cast(logits, yes.dtype) / temperature
    entropy = tf.math.xlogy(yes, yes) + tf.math.xlogy(1 - yes, 1 - yes)
    divergence = entropy + tf.nn.softplus(logits) - yes * logits
    return temperature**2 * _sum_where(labels > 0, divergence)


def squared_differences(labels: tf.Tensor, outputs: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Sums half the squared differences from the numbers of teachers.

    Args:
        labels: Floating (batch, numbers); NaN is padding.
        outputs: Floating (batch, numbers).
        numbers: Floating (batch, numbers).

    Examples:
        >>> labels, outputs = tf.constant([[1.0], [float("nan")]]), tf.constant([[3.0], [9.0]])
        >>> float(squared_differences(labels, outputs, tf.constant([[1.0], [1.0]])))
        2.0
    """
    numbers = tf.cast(numbers, _wide(outputs))
    halves = tf.square(tf.cast(outputs, numbers.dtype) - numbers) / 2
    return _sum_where(tf.math.is_finite(labels), halves)


def tempered_softmax(logits: tf.Tensor, temperature: float) -> tf.Tensor:
    """Makes probabilities of logits that are divided by a temperature."""
    return tf.nn.softmax(tf.cast(logits, _wide(logits)) / temperature)


def tempered_sigmoid(logits: tf.Tensor, temperature: float) -> tf.Tensor:
    """Makes probabilities of decisions of logits that are divided by a temperature."""
    return tf.sigmoid(tf.cast(logits, _wide(logits)) / temperature)


def _wide(values: tf.Tensor) -> tf.DType:
    return tf.float64 if values.dtype == tf.float64 else tf.float32


def _sum_where(real: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.where(real, values, tf.zeros_like(values)))
