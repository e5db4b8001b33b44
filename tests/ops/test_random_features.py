import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops.linear_attention import linear_attention
from keras_attn.ops.random_features import key_features, query_features, random_directions
from tests.backends import thinned
from tests.harness import assert_close
from tests.ops.naive import naive_attention, normal

BATCH, HEADS, KEY_DIM, VALUE_DIM = 2, 3, 5, 7
DIRECTIONS = random_directions(KEY_DIM, 11, seed=1).astype("float32")


def inputs(target, source):
    return (
        normal(BATCH, HEADS, target, KEY_DIM, seed=2),
        normal(BATCH, HEADS, source, KEY_DIM, seed=3),
        normal(BATCH, HEADS, source, VALUE_DIM, seed=4),
    )


def performer(query, key, value, *masks, directions=DIRECTIONS, **options):
    features = query_features(query, directions), key_features(key, directions)
    return ops.convert_to_numpy(linear_attention(*features, value, *masks, **options))


def naive(query, key, value, mask=None, is_causal=False):
    """Algorithm 1 of the paper with its positive features, pair by pair, in float64."""

    def features(x):
        x = np.asarray(x, "float64") / KEY_DIM**0.25
        return np.exp(DIRECTIONS.astype("float64").T @ x - x @ x / 2) / np.sqrt(11)

    (batch, heads, target, _), source = query.shape, key.shape[2]
    allowed = np.broadcast_to(True if mask is None else mask, (batch, heads, source))
    context = np.zeros((batch, heads, target, value.shape[-1]))
    for b, h, i in np.ndindex(batch, heads, target):
        last = i + source - target if is_causal else source - 1
        seen = [j for j in range(last + 1) if allowed[b, h, j]]
        weights = np.array([features(query[b, h, i]) @ features(key[b, h, j]) for j in seen])
        if seen:
            context[b, h, i] = weights / weights.sum() @ value[b, h, seen]
    return context


# Shorter and longer than a block, and no multiple of one.
@pytest.mark.parametrize(("target", "source"), thinned([(141, 141), (11, 11), (5, 11), (11, 5)]))
@pytest.mark.parametrize("is_causal", [False, True])
def test_pair_by_pair(target, source, is_causal):
    arrays = inputs(target, source)
    expected = naive(*arrays, is_causal=is_causal)
    assert_close(performer(*arrays, is_causal=is_causal), expected, atol=2e-5)


@pytest.mark.parametrize("is_causal", [False, True])
def test_masked_keys(is_causal):
    mask = np.random.default_rng(7).random((BATCH, HEADS, 161)) < 0.5
    mask[0] = False
    mask[1, :, :140] = False  # more than a block
    arrays = inputs(161, 161)
    found = performer(*arrays, mask, is_causal)
    assert_close(found, naive(*arrays, mask, is_causal), atol=2e-5)
    assert not found[0].any()


@pytest.mark.parametrize("is_causal", [False, True])
def test_what_is_added_is_below_the_digits(is_causal):
    """What keeps a query from finding no key does not change an estimate in float64."""
    wide = keras.backend.backend() == "tensorflow"  # the others compute float64 in float32
    dtype, atol = ("float64", 1e-10) if wide else ("float32", 2e-5)
    arrays = [x.astype(dtype) for x in inputs(141, 141)]
    found = performer(*arrays, directions=DIRECTIONS.astype(dtype), is_causal=is_causal)
    assert_close(found, naive(*arrays, is_causal=is_causal), atol=atol)


def test_the_softmax_is_estimated():
    """The error falls with the root of the number of features."""
    query, key, value = (0.4 * x for x in inputs(11, 11))
    expected = naive_attention(query, key, value)[0]
    errors = {
        count: np.abs(
            performer(query, key, value, directions=random_directions(KEY_DIM, count, seed=5))
            - expected
        ).max()
        for count in (100, 100_000)
    }
    assert errors[100_000] < 0.01
    assert errors[100_000] < errors[100] / 8


def test_directions_are_orthogonal_and_as_long_as_normal_vectors():
    directions = random_directions(16, 4000, seed=2)
    group = directions[:, 16:32]
    products = group.T @ group
    assert_close(products, np.diag(np.diag(products)), atol=1e-12)
    squares = np.sum(directions**2, axis=0)
    assert abs(squares.mean() - 16) < 0.5  # chi-square of 16 degrees, standard error 0.09
    assert abs(squares.var() - 32) < 5
    assert_close(random_directions(16, 4000, seed=2), directions)


@pytest.mark.slow
@pytest.mark.parametrize("is_causal", [False, True])
def test_keys_of_very_different_lengths(is_causal):
    """The logarithms of their features lie hundreds apart."""
    query, key, value = inputs(301, 301)
    key = key * np.where(np.arange(301) % 150 == 149, 20, 1)[:, None].astype("float32")
    found = performer(query, key, value, is_causal=is_causal)
    assert_close(found, naive(query, key, value, is_causal=is_causal), atol=2e-4)
    before = performer(query[:, :, :149], key[:, :, :149], value[:, :, :149], is_causal=is_causal)
    if is_causal:
        assert_close(found[:, :, :149], before, atol=1e-5)
