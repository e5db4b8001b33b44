"""The loss of Keras: reductions, weights, saving, training."""

import keras
import numpy as np
import pytest

from keras_attn.training import TokenCrossEntropy
from keras_attn.validation import UserError
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
