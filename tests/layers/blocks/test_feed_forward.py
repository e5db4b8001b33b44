"""FeedForward against the formulas written in NumPy."""

import math

import keras
import numpy as np
import pytest

from keras_attn.layers import FeedForward
from tests.harness import numbers, numpy
from tests.layers.judges import called
from tests.refusals import refused

X = numbers(1, 2, 5, 7)
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("use_bias", [False, True])
def test_equals_the_formula(activation, gated, use_bias):
    layer = called(FeedForward(11, activation, gated=gated, use_bias=use_bias), X)

    def dense(part, x):
        bias = numpy(part.bias) if use_bias else 0
        return x @ numpy(part.kernel).astype("float64") + bias

    hidden = ACTIVATIONS[activation](dense(layer.intermediate, X))
    if gated:
        hidden = hidden * dense(layer.gate, X)
    np.testing.assert_allclose(numpy(layer(X)), dense(layer.output_projection, hidden), atol=1e-5)


def test_dropout_is_of_the_hidden_activations():
    layer = FeedForward(1009, dropout=0.25, use_bias=False, seed=3)
    layer(X)
    layer.output_projection.kernel.assign(np.ones((1009, 7)) / 1009)
    layer.intermediate.kernel.assign(np.ones((7, 1009)))
    x = np.ones((1, 1, 7), "float32")  # every hidden activation is 7
    np.testing.assert_allclose(numpy(layer(x)), 7, rtol=1e-5)
    first, second = (numpy(layer(x, training=True))[0, 0, 0] for _ in range(2))
    assert first != second
    kept = first / 7 * 0.75
    assert kept == pytest.approx(0.75, abs=0.05)
    assert kept * 1009 == pytest.approx(round(kept * 1009), abs=1e-2)  # whole ones were dropped


def test_an_activation_may_be_a_function():
    layer = FeedForward(11, keras.activations.tanh)
    assert layer.get_config()["activation"] == "tanh"


def test_seeded_kernels_differ():
    initializer = keras.initializers.GlorotUniform(seed=5)
    layer = FeedForward(7, gated=True, kernel_initializer=initializer)
    layer(X)
    parts = (layer.intermediate, layer.gate, layer.output_projection)
    kernels = [numpy(part.kernel) for part in parts]
    assert not any(np.allclose(kernels[i], kernels[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"intermediate_dim": -3}, "`intermediate_dim` must be .* intermediate_dim=-3."),
        ({"dropout": 1}, r"`dropout` must be a number in \[0, 1\). Received: dropout=1."),
    ],
)
def test_mistakes(arguments, message):
    refused(message, FeedForward, **{"intermediate_dim": 11} | arguments)
