"""Consistency of predictions under two dropout masks: R-Drop."""

from typing import Any

import tensorflow as tf

from keras_attn.ops.cross_entropy import PADDING_ID


def twice(batch: Any) -> Any:
    """Repeats every row, so that it has two dropout masks: (rows, …) to (2 · rows, …)."""
    return tf.nest.map_structure(lambda rows: tf.concat([rows, rows], axis=0), batch)


def divergence(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Computes the divergence between the predictions of the two halves of the rows.

    Args:
        labels: Integer, (2 · rows, length), both halves equal; 0 is padding.
        logits: Floating, (2 · rows, length, vocabulary).

    Returns:
        A scalar, float32 (float64 for float64 logits): the sum of KL(p‖q) + KL(q‖p) over the real
        tokens of the first half, in nats.

    Reference: Wu et al. 2021, R-Drop: Regularized Dropout for Neural Networks, equation 2.
    """
    dtype = tf.float64 if logits.dtype == tf.float64 else tf.float32
    first, second = tf.split(tf.nn.log_softmax(tf.cast(logits, dtype)), 2)
    # Σ p log(p/q) + Σ q log(q/p) in one pass.
    both_ways = tf.reduce_sum((tf.exp(first) - tf.exp(second)) * (first - second), axis=-1)
    real = tf.split(labels, 2)[0] != PADDING_ID
    return tf.reduce_sum(tf.where(real, both_ways, tf.zeros_like(both_ways)))
