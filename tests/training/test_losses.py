import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.training import TokenCrossEntropy, token_cross_entropy
from keras_attn.validation import UserError


def naive_loss(labels, logits, smoothing):
    """Per-token loss from the whole distributions, one token after the other, in float64."""
    losses = np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        row = logits[place].astype(np.float64)
        log_probabilities = row - row.max() - np.log(np.exp(row - row.max()).sum())
        target = np.full(len(row), smoothing / len(row))
        target[labels[place]] += 1 - smoothing
        losses[place] = -(target * log_probabilities).sum() if labels[place] else 0.0
    return losses


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


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_against_automatic_differentiation(batch, smoothing, jit):
    labels, logits = batch

    def plain(logits):
        log_probabilities = ops.log_softmax(logits)
        target = ops.one_hot(labels, 7, dtype=logits.dtype) * (1 - smoothing) + smoothing / 7
        return ops.sum(-ops.sum(target * log_probabilities, -1) * (labels > 0))

    def ours(logits):
        return token_cross_entropy(labels, logits, smoothing)[0]

    wide = logits.astype("float64") if keras.backend.backend() == "tensorflow" else logits
    np.testing.assert_allclose(
        gradient(ours, wide, jit), gradient(plain, wide, jit), rtol=1e-5, atol=1e-6
    )


def gradient(function, value, jit):
    if keras.backend.backend() == "jax":
        import jax

        transformed = jax.grad(function)
        return np.asarray((jax.jit(transformed) if jit else transformed)(value))
    import tensorflow as tf

    @tf.function(jit_compile=jit)
    def transformed(value):
        with tf.GradientTape() as tape:
            tape.watch(value)
            result = function(value)
        return tape.gradient(result, value)

    return transformed(tf.constant(value)).numpy()


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


def test_keras_loss_is_the_mean_over_real_tokens(batch):
    labels, logits = batch
    naive = naive_loss(labels, logits, 0.1)
    loss = TokenCrossEntropy(0.1)
    np.testing.assert_allclose(float(loss(labels, logits)), naive.sum() / 11, rtol=1e-6)
    total = TokenCrossEntropy(0.1, reduction="sum")(labels, logits)
    np.testing.assert_allclose(float(total), naive.sum(), rtol=1e-6)
    single = TokenCrossEntropy(0.1, reduction="none")(labels, logits)
    np.testing.assert_allclose(np.asarray(single), naive, rtol=1e-5)


def test_keras_loss_weights_rows(batch):
    labels, logits = batch
    weights = np.array([2.0, 0.0, 1.0], "float32")
    expected = (naive_loss(labels, logits, 0.0) * weights[:, None]).sum() / 11
    value = float(TokenCrossEntropy()(labels, logits, sample_weight=weights))
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_all_padding_is_zero_not_nan():
    assert float(TokenCrossEntropy()(np.zeros((2, 3), int), np.ones((2, 3, 5), "float32"))) == 0


def test_keras_loss_can_be_saved():
    loss = TokenCrossEntropy(0.2, reduction="sum", name="other")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert isinstance(again, TokenCrossEntropy)
    assert (again.label_smoothing, again.reduction, again.name) == (0.2, "sum", "other")


def test_compile_and_fit(batch):
    labels, _ = batch
    model = keras.Sequential([keras.layers.Embedding(7, 13), keras.layers.Dense(7)])
    model.compile("adam", loss=TokenCrossEntropy(0.1))
    first = model.evaluate(labels, labels, verbose=0)
    np.testing.assert_allclose(
        first, naive_loss(labels, np.asarray(model(labels)), 0.1).sum() / 11, rtol=1e-5
    )
    model.fit(labels, labels, epochs=30, batch_size=3, verbose=0)
    assert model.evaluate(labels, labels, verbose=0) < first - 0.1


@pytest.mark.parametrize("value", [1.0, -0.1, "0.1"])
def test_label_smoothing_must_be_a_rate(value):
    with pytest.raises(UserError, match=rf"label_smoothing={value!r}"):
        TokenCrossEntropy(value)
