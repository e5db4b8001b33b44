"""Layer normalisation: the value by its definition, the gradients by finite differences."""

import keras
import numpy as np
import pytest

from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.ops.layer_norm import layer_norm
from tests.backends import thinned
from tests.harness import assert_close, numbers
from tests.ops.naive import context_and_gradients

EPSILON = 1e-3  # large enough to be seen


def by_definition(x, gamma, beta):
    mean, variance = np.mean(x, axis=-1, keepdims=True), np.var(x, axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + EPSILON) + beta


def slopes(function, values, upstream):
    """The gradients of sum(upstream * function(*values)) by central differences."""
    found = []
    for value in values:
        grad = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            before, ends = value[place], []
            for step in (1e-6, -1e-6):
                value[place] = before + step
                ends.append(np.sum(upstream * function(*values)))
            value[place] = before
            grad[place] = (ends[0] - ends[1]) / 2e-6
        found.append(grad)
    return found


def inputs(*shape):
    x = (3 * numbers(1, *shape) + 5).astype("float64")
    return [x, *(numbers(seed, shape[-1]).astype("float64") for seed in (2, 3))]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("compiled", thinned([True, False, "xla"], 3))
@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 7), (2, 1, 8), (1, 1)])
def test_value_and_gradients(shape, compiled, training):
    values, upstream = inputs(*shape), numbers(4, *shape)
    found, *grads = context_and_gradients(
        lambda *arguments: layer_norm(*arguments, EPSILON, training),
        *(value.astype("float32") for value in values),
        upstream,
        compiled=compiled,
    )
    assert_close(found, by_definition(*values), atol=2e-5)
    assert_close(grads, slopes(by_definition, values, upstream), atol=2e-4)


@pytest.mark.parametrize("training", [False, True])
def test_rows_far_from_zero_keep_their_digits(training):
    """The variance is that of differences from the mean, not a difference of two large squares."""
    x = 1000 + numbers(1, 3, 64)
    found = np.array(layer_norm(x, np.ones(64), np.zeros(64), EPSILON, training))
    assert_close(found, by_definition(x.astype("float64"), 1, 0), atol=1e-3)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_in_float32(dtype, training):
    x = keras.ops.cast(300 * numbers(1, 3, 64), dtype)  # the squares pass float16's largest number
    found = layer_norm(x, np.ones(64), np.zeros(64), EPSILON, training)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    wide = np.array(keras.ops.cast(x, "float32"))
    found = np.array(keras.ops.cast(found, "float32"))
    assert_close(found, by_definition(wide, 1, 0), atol=2e-2)


def test_the_layer_is_that_of_keras_in_weights_and_config():
    ours, theirs = (
        LayerNormalization(epsilon=EPSILON),
        keras.layers.LayerNormalization(epsilon=EPSILON),
    )
    for layer in (ours, theirs):
        layer.build((None, None, 8))
    theirs.set_weights([numbers(1, 8), numbers(2, 8)])
    ours.set_weights(theirs.get_weights())
    x = numbers(3, 2, 5, 8)
    for training in (False, True):
        assert_close(np.array(ours(x, training=training)), np.array(theirs(x)), atol=1e-5)
    again = LayerNormalization.from_config(ours.get_config())
    assert again.get_config() == ours.get_config()
