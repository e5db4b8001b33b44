"""Dropout: what is dropped, how the rest is scaled, and that the gradient agrees."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers.dropout import Dropout
from keras_attn.ops.dropout import dropout
from keras_attn.validation import UserError
from tests.backends import thinned


def dropped(shape, rate, seed=1, dtype="float32"):
    generator = keras.random.SeedGenerator(seed)
    return np.array(ops.cast(dropout(ops.ones(shape, dtype), rate, generator), "float32"))


@pytest.mark.parametrize("rate", thinned([0.1, 0.001, 0.3, 0.5, 0.9, 0.999]))
def test_share_and_scale(rate):
    generator = keras.random.SeedGenerator(1)
    draws = [np.array(dropout(ops.ones((211, 307)), rate, generator)) for _ in range(200)]
    values = np.unique(draws)
    assert values[0] == 0
    assert len(values) == 2
    np.testing.assert_allclose(values[1], 1 / (1 - rate), rtol=1e-5)
    # The threshold changes from call to call by one of 256 levels: six standard deviations of a
    # share over all elements, and of a mean of 200 such thresholds.
    share = np.mean(np.equal(draws, 0))
    deviation = np.sqrt(rate * (1 - rate) / np.size(draws)) + 0.5 / 256 / np.sqrt(len(draws))
    assert abs(share - rate) < 6 * deviation


def test_a_rate_between_two_levels_takes_both():
    generator = keras.random.SeedGenerator(1)
    shares = [
        np.mean(np.equal(np.array(dropout(ops.ones(200_000), 0.25 / 256, generator)), 0))
        for _ in range(100)
    ]
    below, above = np.sum(np.equal(shares, 0)), np.sum(np.isclose(shares, 1 / 256, rtol=0.2))
    assert below + above == 100
    assert 10 <= above <= 40  # 25 are expected


def test_elements_are_dropped_independently():
    """Neighbours, both halves of one drawn number, and rows do not know of each other."""
    found = dropped((1000, 1000), 0.5) == 0
    for shift, axis in ((1, 1), (2, 1), (1, 0), (500, 1)):
        other = np.roll(found, shift, axis=axis)
        assert abs(np.mean(found & other) - 0.25) < 5 * np.sqrt(0.1875 / found.size)


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (2, 3, 4), ()])
def test_any_shape(shape):
    assert dropped(shape, 0.5).shape == shape


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_dtypes(dtype):
    generator = keras.random.SeedGenerator(1)
    found = dropout(ops.ones((3, 5), dtype), 0.5, generator)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    assert set(np.unique(ops.cast(found, "float32"))) == {0.0, 2.0}


def test_draws_differ_and_seeds_repeat_them():
    generator = keras.random.SeedGenerator(1)
    first, second = (np.array(dropout(ops.ones((31, 37)), 0.5, generator)) for _ in range(2))
    assert np.mean(first == second) < 0.6
    np.testing.assert_array_equal(first, dropped((31, 37), 0.5))
    assert np.mean(first == dropped((31, 37), 0.5, seed=2)) < 0.6


def test_the_layer():
    layer = Dropout(0.5, seed=1)
    x = np.arange(1, 12, dtype="float32")
    found = np.array(layer(x, training=True))
    kept = found != 0
    assert 0 < kept.sum() < 11
    np.testing.assert_allclose(found[kept], 2 * x[kept])
    np.testing.assert_array_equal(layer(x, training=False), x)
    np.testing.assert_array_equal(layer(x), x)
    copy = Dropout.from_config(layer.get_config())
    np.testing.assert_array_equal(copy(x, training=True), found)


def test_a_rate_out_of_range():
    with pytest.raises(UserError, match=r"`rate` must be .* Received: rate=1.0"):
        dropout(ops.ones(3), 1.0, keras.random.SeedGenerator(1))
