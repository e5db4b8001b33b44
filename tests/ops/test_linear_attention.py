import numpy as np
import pytest
from keras import ops

from keras_attn.ops.linear_attention import (
    Features,
    elu_features,
    initial_linear_state,
    linear_attention_step,
)
from keras_attn.ops.linear_attention import linear_attention as attend
from tests.backends import thinned
from tests.harness import assert_close
from tests.ops.naive import context_and_gradients, normal

BATCH, HEADS, KEY_DIM, VALUE_DIM = 2, 3, 5, 7


def inputs(target, source):
    return (
        normal(BATCH, HEADS, target, KEY_DIM, seed=2),
        normal(BATCH, HEADS, source, KEY_DIM, seed=3),
        normal(BATCH, HEADS, source, VALUE_DIM, seed=4),
    )


def linear_attention(query, key, value, *masks, **options):
    return attend(elu_features(query), Features(elu_features(key)), value, *masks, **options)


def positive(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def naive(query, key, value, mask=None, is_causal=False):
    """Equation 4 of the paper with φ(x) = elu(x) + 1, pair by pair, in float64."""
    query, key, value = (np.asarray(x, "float64") for x in (query, key, value))
    (batch, heads, target, _), source = query.shape, key.shape[2]
    allowed = np.broadcast_to(True if mask is None else mask, (batch, heads, source))
    context = np.zeros((batch, heads, target, value.shape[-1]))
    for b, h, i in np.ndindex(batch, heads, target):
        seen = [
            j
            for j in range(source)
            if allowed[b, h, j] and (not is_causal or j <= i + source - target)
        ]
        weights = np.array([positive(query[b, h, i]) @ positive(key[b, h, j]) for j in seen])
        if seen:
            context[b, h, i] = weights / weights.sum() @ value[b, h, seen]
    return context


def quadratic(query, key, value, is_causal):
    """The same with a matrix of weights, for its gradient."""
    weights = ops.matmul(ops.elu(query) + 1, ops.swapaxes(ops.elu(key) + 1, -1, -2))
    if is_causal:
        weights *= ops.tril(ops.ones_like(weights))
    return ops.matmul(weights / ops.sum(weights, axis=-1, keepdims=True), value)


# Shorter and longer than a block, and no multiple of one.
@pytest.mark.parametrize(("target", "source"), thinned([(151, 151), (11, 11), (5, 11), (11, 5)]))
@pytest.mark.parametrize("is_causal", [False, True])
def test_pair_by_pair(target, source, is_causal):
    arrays = inputs(target, source)
    context = ops.convert_to_numpy(linear_attention(*arrays, is_causal=is_causal))
    assert_close(context, naive(*arrays, is_causal=is_causal), atol=2e-6)


@pytest.mark.parametrize("shape", [(BATCH, 1, 11), (BATCH, HEADS, 11)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_masked_keys(shape, is_causal):
    mask = np.random.default_rng(7).random(shape) < 0.5
    mask[0] = False
    arrays = inputs(11, 11)
    context = ops.convert_to_numpy(linear_attention(*arrays, mask, is_causal))
    assert_close(context, naive(*arrays, mask, is_causal), atol=2e-6)
    assert not context[0].any()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_the_matrix_of_weights(is_causal, compiled):
    arrays = (*inputs(301, 301), normal(BATCH, HEADS, 301, VALUE_DIM, seed=5))
    ours = context_and_gradients(
        lambda *x: linear_attention(*x, is_causal=is_causal), *arrays, compiled=compiled
    )
    theirs = context_and_gradients(lambda *x: quadratic(*x, is_causal), *arrays)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, atol=2e-5 * np.abs(b).max())


def test_steps_equal_the_whole():
    arrays = inputs(11, 11)
    expected = naive(*arrays, is_causal=True)
    state = initial_linear_state(BATCH, HEADS, KEY_DIM, VALUE_DIM, "float32")
    for i in range(11):
        query, key, value = (x[:, :, i : i + 1] for x in arrays)
        key = Features(elu_features(key))
        context, state = linear_attention_step(elu_features(query), key, value, state)
        assert_close(ops.convert_to_numpy(context)[:, :, 0], expected[:, :, i], atol=2e-6)


def test_half_precision_stays_finite():
    """Sums over 4,096 keys pass 65,504."""
    query, key, value = (100 * x for x in inputs(4096, 4096))
    halves = [ops.cast(x, "float16") for x in (query, key, value)]
    context = ops.convert_to_numpy(linear_attention(*halves))
    assert_close(context[:, :, :2], naive(halves[0][:, :, :2], *halves[1:]), rtol=2e-3, atol=0.05)
