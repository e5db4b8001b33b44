"""SequencePooling: what is pooled, and what is not."""

import keras
import numpy as np
import pytest

from keras_attn.layers import SequencePooling
from tests.harness import numbers, numpy
from tests.refusals import refused

X = numbers(1, 3, 5, 7)
MASK = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
POOLINGS = {
    "mean": lambda x: x.mean(0),
    "max": lambda x: x.max(0),
    "mean_max": lambda x: np.concatenate([x.mean(0), x.max(0)]),
    "first": lambda x: x[0],
    "first_two": lambda x: np.concatenate([x[0], x[1] if len(x) > 1 else 0 * x[0]]),
    "last": lambda x: x[-1],
    "mean_sqrt": lambda x: x.sum(0) / np.sqrt(len(x)),
    "weighted_mean": lambda x: np.average(x, axis=0, weights=np.arange(len(x)) + 1),
}


def test_several_one_after_the_other():
    found = numpy(SequencePooling(["last", "mean", "mean_max"])(X, mask=MASK))
    parts = [numpy(SequencePooling(name)(X, mask=MASK)) for name in ("last", "mean", "mean_max")]
    np.testing.assert_array_equal(found, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_only_what_is_real_is_pooled(pooling):
    x = np.where(MASK[..., None], X, 1e30).astype("float32")
    found = numpy(SequencePooling(pooling)(x, mask=MASK))
    expected = [POOLINGS[pooling](x) for x in (X[0, :3], np.zeros((1, 7)), X[2])]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(numpy(SequencePooling(pooling)(X[2:]))[0], expected[2], atol=1e-6)


def test_the_mask_that_keras_propagates():
    inputs = keras.Input((None, 7))
    model = keras.Model(inputs, SequencePooling()(keras.layers.Masking()(inputs)))
    padded = np.where(MASK[..., None], X, 0).astype("float32")
    np.testing.assert_allclose(numpy(model(padded))[0], X[0, :3].mean(0), atol=1e-6)
    assert model.output.shape == (None, 7)


def test_a_mean_of_many_bfloat16_numbers():
    ones = np.ones((1, 3001, 2), "float32")
    assert numpy(SequencePooling(dtype="bfloat16")(ones)).astype("float32").tolist() == [[1, 1]]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_are_finite(pooling):
    inputs, mask = keras.Input((5, 7)), keras.Input((5,), dtype="bool")
    dense = keras.layers.Dense(3)
    model = keras.Model([inputs, mask], SequencePooling(pooling)(dense(inputs), mask=mask))
    model.compile("sgd", "mse")
    model.fit([X, MASK], np.ones((3, model.output.shape[1]), "float32"), verbose=0)
    assert np.isfinite(numpy(dense.kernel)).all()


def test_mistakes_are_told():
    refused("'mean', 'max', 'mean_max', 'first'.*Received: pooling='sum'.", SequencePooling, "sum")
