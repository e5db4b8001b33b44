import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.training import TrainingStep, make_optimizer
from keras_attn.training.workers.consistency import divergence, twice
from tests.training.loop.test_step import RATE, one_update, planned
from tests.training.stand_in import StandInTask, backbone, settings, train

pytestmark = pytest.mark.tensorflow

ALPHA = 5.0


@pytest.fixture
def double():
    keras.config.set_dtype_policy("float64")


class TwoMasks(keras.Model):
    """Like dropout with known masks: the second half of the rows has other logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        logits = self.model(inputs)
        first, second = tf.split(logits, 2)
        return tf.concat([first, changed(second)], axis=0)


def changed(logits):
    return 1.5 * logits + tf.linspace(tf.zeros((), logits.dtype), 1, logits.shape[-1])


def test_divergence_by_hand():
    first = np.log([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]])
    second = np.log([[[0.25, 0.5, 0.25], [0.3, 0.3, 0.4]]])
    labels = tf.constant([[2, 0]] * 2)
    value = divergence(labels, tf.constant(np.concatenate([first, second])))
    # KL(p‖q) = 0.5 ln 2 - 0.25 ln 2, and as much the other way; the second token is padding.
    np.testing.assert_allclose(value, 0.5 * math.log(2), rtol=1e-12)


@pytest.mark.slow
def test_without_dropout_nothing_changes(double):
    (batch,) = planned(1000)
    plain, sums, _ = one_update([batch], clip_norm=0.01, epsilon=0.001)
    weights, doubled_sums, _ = one_update([batch], ALPHA, clip_norm=0.01, epsilon=0.001)
    np.testing.assert_allclose(doubled_sums, sums, rtol=1e-12)
    for ours, expected in zip(weights, plain, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


def test_update_against_the_papers_formula(double):
    """Equation 4 of the paper: (-log p - log q + alpha/2 (KL(p‖q) + KL(q‖p))), here over two."""
    (batch,) = planned(1000)
    inputs, labels = batch
    model = backbone()
    with tf.GradientTape() as tape:
        logits = model(inputs)
        both = [tf.nn.softmax(logits), tf.nn.softmax(changed(logits))]
        target = tf.one_hot(labels, logits.shape[-1], dtype=logits.dtype) * 0.9 + 0.1 / 17
        likelihood = sum(keras.losses.categorical_crossentropy(target, p) for p in both)
        p, q = both
        kl = keras.losses.kl_divergence(p, q) + keras.losses.kl_divergence(q, p)
        real = tf.cast(labels > 0, logits.dtype)
        total = tf.reduce_sum((likelihood + ALPHA / 2 * kl) * real) / 2
        loss = total / tf.reduce_sum(real)
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])

    ours = backbone()
    masked = TwoMasks(ours)
    masked(twice(inputs))
    optimizer = make_optimizer(settings(epsilon=0.001), RATE, masked.trainable_variables, False)
    step = TrainingStep(
        masked,
        optimizer,
        tf.distribute.get_strategy(),
        label_smoothing=0.1,
        clip_norm=1.0,
        consistency=ALPHA,
    )
    sums = step([batch]).numpy()
    assert sums[2] == np.count_nonzero(labels)
    np.testing.assert_allclose(sums[0], total, rtol=1e-6)  # Keras keeps its losses off 0 by 1e-7
    norm = np.sqrt(sum(np.sum(tf.convert_to_tensor(g).numpy() ** 2) for g in gradients))
    clip = min(1.0, 1.0 / norm)
    for after, before, gradient in zip(
        ours.get_weights(), model.get_weights(), gradients, strict=True
    ):
        g = tf.convert_to_tensor(gradient).numpy() * clip
        expected = before - RATE * g / (np.abs(g) + 0.001 / np.sqrt(1 - 0.98))
        np.testing.assert_allclose(after, expected, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_training_draws_predictions_together(tmp_path):
    """Under dropout the two predictions of a row come nearer than they do without the term."""

    def distance(folder, consistency):
        task = StandInTask(dropout=0.3)
        train(tmp_path / folder, task=task, epochs=6, consistency=consistency)
        inputs, labels = twice(planned(1000)[0])
        return float(divergence(labels, task.backbone(inputs, training=True)))

    assert distance("with", ALPHA) < 0.7 * distance("without", 0.0)
