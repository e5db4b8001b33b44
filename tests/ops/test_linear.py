"""A matrix product with a bias, against NumPy, and the dense layer made of it."""

import statistics

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers.dense import Dense
from keras_attn.ops.linear import linear
from tests.harness import assert_close, numbers
from tests.ops.naive import context_and_gradients


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("compiled", [False, True, "xla"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (1, 1, 5), (2, 3, 4, 5)])
def test_value_and_gradients(shape, compiled, training):
    x, kernel, bias = numbers(1, *shape), numbers(2, 5, 7), numbers(3, 7)
    upstream = numbers(4, *shape[:-1], 7)
    found, *grads = context_and_gradients(
        lambda *arguments: linear(*arguments, ops.relu, training),
        *(x, kernel, bias, upstream),
        compiled=compiled,
    )
    product = x @ kernel + bias
    np.testing.assert_allclose(found, np.maximum(product, 0), atol=1e-5)
    upstream = np.where(product > 0, upstream, 0)
    rows = upstream.reshape(-1, 7)
    wanted = upstream @ kernel.T, x.reshape(-1, 5).T @ rows, rows.sum(axis=0)
    assert_close(grads, wanted, atol=1e-5)


def test_without_bias_and_activation():
    x, kernel = numbers(1, 2, 3, 5), numbers(2, 5, 7)
    np.testing.assert_allclose(np.array(linear(x, kernel)), x @ kernel, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_the_layer_is_that_of_keras(training):
    theirs = keras.layers.Dense(7, activation="gelu", bias_initializer="normal")
    x = numbers(1, 2, 3, 5)
    expected = np.array(theirs(x))
    ours = Dense.from_config(theirs.get_config())
    ours.build(x.shape)
    ours.set_weights(theirs.get_weights())
    np.testing.assert_allclose(np.array(ours(x, training=training)), expected, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("compiled", [False, True, "xla"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gelu_is_exact_in_every_precision(dtype, compiled, training):
    """GELU(x) = x P(X <= x) of a normal X, its slope P(X <= x) + x p(x)."""
    x, kernel, bias = numbers(1, 2, 3, 5), numbers(2, 5, 7), numbers(3, 7)
    upstream = numbers(4, 2, 3, 7)
    found, *grads = context_and_gradients(
        lambda *arguments: ops.cast(
            linear(*(ops.cast(one, dtype) for one in arguments), keras.activations.gelu, training),
            "float32",
        ),
        *(x, kernel, bias, upstream),
        compiled=compiled,
    )
    product = x @ kernel + bias
    below = np.vectorize(statistics.NormalDist().cdf)(product)
    slope = below + product * np.vectorize(statistics.NormalDist().pdf)(product)
    rows = (upstream * slope).reshape(-1, 7)
    wanted = (upstream * slope) @ kernel.T, x.reshape(-1, 5).T @ rows, rows.sum(axis=0)
    near = 1e-5 if dtype == "float32" else 0.1
    np.testing.assert_allclose(found, product * below, atol=near)
    assert_close(grads, wanted, atol=near)
