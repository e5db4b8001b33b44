"""Cross-entropy against the formula written out label by label."""

import contextlib
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops.adding import add_at, adds_in_place
from keras_attn.ops.cross_entropy import token_cross_entropy
from tests.ops.naive import context_and_gradients
from tests.ops.naive_cross_entropy import naive_loss


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 7, (3, 5)).astype("int32")
    labels[1, 2:] = 0
    labels[2, 4:] = 0
    logits = generator.normal(0, 3, (3, 5, 7)).astype("float32")
    labels[0, :3] = np.maximum(logits[0, :3].argmax(-1), 1)
    return labels, logits


def test_loss_worked_out_by_hand():
    # Probabilities 1/2, 1/4, 1/4 and label 1: the target is 0.1/3 + (0, 0.9, 0), so the loss is
    # 0.1/3 ln 2 + (0.9 + 0.1/3) ln 4 + 0.1/3 ln 4 = (0.1/3 + 2 (0.9 + 0.2/3)) ln 2.
    logits = np.log([[[0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]]).astype("float32")
    sums = token_cross_entropy(np.array([[1, 0]]), logits, 0.1)
    expected = (0.1 / 3 + 2 * (0.9 + 0.2 / 3)) * math.log(2)
    np.testing.assert_allclose([float(s) for s in sums], [expected, math.log(4), 1, 0], rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
def test_sums_against_naive_formula(batch, smoothing):
    labels, logits = batch
    loss, nll, count, correct = (float(s) for s in token_cross_entropy(labels, logits, smoothing))
    right = (logits.argmax(-1) == labels) & (labels > 0)
    assert (count, correct) == (11, right.sum())
    assert 0 < correct < count
    np.testing.assert_allclose(loss, naive_loss(labels, logits, smoothing).sum(), rtol=1e-6)
    np.testing.assert_allclose(nll, naive_loss(labels, logits, 0.0).sum(), rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True, "xla", "in place"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_against_automatic_differentiation(batch, smoothing, compiled):
    labels, logits = batch

    def plain(logits):
        log_probabilities = ops.log_softmax(logits)
        target = ops.one_hot(labels, 7, dtype=logits.dtype) * (1 - smoothing) + smoothing / 7
        return -ops.sum(ops.multiply(ops.sum(target * log_probabilities, -1), labels > 0))

    def ours(logits):
        return token_cross_entropy(labels, logits, smoothing)[0]

    wide = logits if keras.backend.backend() == "jax" else logits.astype("float64")
    in_place = compiled == "in place" and keras.backend.backend() == "tensorflow"
    with adds_in_place() if in_place else contextlib.nullcontext():
        found, expected = (
            context_and_gradients(function, wide, np.float32(1), compiled=compiled)[1]
            for function in (ours, plain)
        )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_logits_are_computed_in_float32(batch, dtype):
    labels, logits = batch
    low = ops.cast(logits, dtype)
    sums = token_cross_entropy(labels, low, 0.1)
    assert {keras.backend.standardize_dtype(s.dtype) for s in sums} == {"float32"}
    expected = naive_loss(labels, np.asarray(ops.cast(low, "float32")), 0.1).sum()
    np.testing.assert_allclose(float(sums[0]), expected, rtol=1e-6)


def test_large_logits_stay_finite():
    logits = np.array([[[60000.0, -60000.0, 0.0]]], "float32")
    assert float(token_cross_entropy(np.array([[1]]), logits)[0]) == 120000.0


@pytest.mark.parametrize("smoothing", [0.0, 0.23])
def test_classes_without_a_column_for_padding(smoothing):
    generator = np.random.default_rng(1)
    classes = np.array([3, 0, 1, 5, 2], "int32")  # 0 is a row of padding
    logits = generator.normal(0, 2, (5, 5)).astype("float32")
    logits[0, 2] = 9.0
    sums = [float(s) for s in token_cross_entropy(classes, logits, smoothing, first_label=1)]
    losses, correct = [], 0
    for row in (0, 2, 3, 4):
        log_probabilities = logits[row] - np.log(np.exp(logits[row].astype("float64")).sum())
        target = np.full(5, smoothing / 5)
        target[classes[row] - 1] += 1 - smoothing
        losses.append(-(target * log_probabilities).sum())
        correct += int(logits[row].argmax() == classes[row] - 1)
    np.testing.assert_allclose(sums[0], np.sum(losses), rtol=1e-6)
    assert sums[2:] == [4, correct]
    assert 0 < correct < 4


@pytest.mark.tensorflow
def test_adding_in_place_changes_nothing_that_is_held():
    import tensorflow as tf

    rows, columns = np.array([0, 2]), np.array([1, 3])

    @tf.function
    def run(x):
        fresh = x * 2.0
        with adds_in_place():
            return add_at(fresh, rows, columns, tf.constant([1.0, -1.0])), fresh * 1.0, x

    x = np.arange(12, dtype="float32").reshape(3, 4)
    expected = 2 * x
    expected[rows, columns] += [1, -1]
    added, fresh, unchanged = run(tf.constant(x))
    np.testing.assert_array_equal(added, expected)
    np.testing.assert_array_equal(fresh, 2 * x)
    np.testing.assert_array_equal(unchanged, x)
    with adds_in_place():
        assert add_at(tf.zeros((0, 4)), rows[:0], columns[:0], tf.zeros((0,))).shape == (0, 4)
