import keras
import numpy as np
import pytest

from keras_attn.ops import dot_product_attention
from tests.ops.naive import assert_naive, context_and_gradients, naive_attention, normal
from tests.ops.test_attention import dense, inputs, small_blocks

IMPLEMENTATIONS = pytest.mark.parametrize("attend", [dense, small_blocks])
RATE = 0.3


def dropping(attend, mask, seed):
    return lambda *arguments: attend(
        *arguments, mask=mask, dropout=RATE, seed=keras.random.SeedGenerator(seed)
    )


def keep_factors(attend, query, key, mask, seed):
    """What dropout multiplied each probability with, read off by attending to an identity."""
    batch, kv_heads, source = key.shape[:3]
    identity = np.broadcast_to(np.eye(source, dtype="float32"), (batch, kv_heads, source, source))
    upstream = np.zeros((*query.shape[:3], source), "float32")
    context, *_ = context_and_gradients(
        dropping(attend, mask, seed), query, key, identity, upstream
    )
    _, probabilities = naive_attention(query, key, identity, mask)
    live = probabilities > 0
    return np.where(live, context / np.where(live, probabilities, 1.0), 1.0), live


@IMPLEMENTATIONS
def test_backward_drops_what_forward_dropped(attend):
    query, key, *_ = arrays = inputs()
    mask = np.random.default_rng(1).random((2, 6, 11, 13)) < 0.7
    keep, live = keep_factors(attend, query, key, mask, seed=5)
    dropped = keep < 0.5
    np.testing.assert_allclose(keep[live], np.where(dropped, 0, 1 / (1 - RATE))[live], atol=1e-4)
    assert dropped.any()
    found = context_and_gradients(dropping(attend, mask, seed=5), *arrays)
    assert_naive(found, arrays, mask, atol=1e-4, gradient_atol=2e-4, keep=keep)


@IMPLEMENTATIONS
def test_rate_and_independence(attend):
    query, key = normal(2, 3, 53, 5), normal(2, 3, 59, 5)
    keep, _ = keep_factors(attend, query, key, None, seed=8)
    dropped = keep < 0.5
    # 18762 draws: the standard deviation of the share is 0.0034.
    assert dropped.mean() == pytest.approx(RATE, abs=0.015)
    assert np.ptp(dropped.mean((2, 3))) < 0.1
    # Neighbours in a row, a column, a head and (for blocks of 4 x 5) the next block are unrelated.
    for axis, distance in ((3, 1), (2, 1), (1, 1), (0, 1), (2, 4), (3, 5)):
        first = np.take(dropped, range(dropped.shape[axis] - distance), axis)
        second = np.take(dropped, range(distance, dropped.shape[axis]), axis)
        assert np.mean(first & second) == pytest.approx(RATE**2, abs=0.02)


@IMPLEMENTATIONS
def test_every_call_and_every_seed_draws_anew(attend):
    query, key, value, _ = (keras.ops.convert_to_tensor(part) for part in inputs())
    generator = keras.random.SeedGenerator(11)

    def draw(seed):
        return keras.ops.convert_to_numpy(attend(query, key, value, dropout=RATE, seed=seed))

    first, second = draw(generator), draw(generator)
    assert np.abs(first - second).max() > 0.01
    np.testing.assert_array_equal(first, draw(keras.random.SeedGenerator(11)))
    assert np.abs(first - draw(keras.random.SeedGenerator(12))).max() > 0.01


def test_no_dropout_draws_nothing():
    query, key, value, _ = inputs()
    generator = keras.random.SeedGenerator(11)
    before = keras.ops.convert_to_numpy(generator.state.value).copy()
    for implementation in ("dense", "chunked"):
        dot_product_attention(query, key, value, seed=generator, implementation=implementation)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(generator.state.value), before)
