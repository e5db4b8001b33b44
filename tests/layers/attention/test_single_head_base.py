"""Bahdanau's, Luong's and parameterless attention, pair by pair as the papers write them."""

import keras
import numpy as np
import pytest

from keras_attn.layers import AdditiveAttention, LuongAttention, SimpleSelfAttention
from keras_attn.validation import UserError
from tests.harness import assert_close, numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

QUERY, VALUE, KEY = numbers(1, 2, 5, 4), numbers(2, 2, 7, 6), numbers(3, 2, 7, 4)
REAL = np.arange(7)[None, :] < np.array([[4], [7]])


def by_pairs(score, query, value, key):
    """Context and probabilities for a score of two vectors, by loops in float64."""
    query, value, key = (np.asarray(x, "float64") for x in (query, value, key))
    context = np.zeros((*query.shape[:2], value.shape[-1]))
    probabilities = np.zeros((*query.shape[:2], key.shape[1]))
    for b, i in np.ndindex(query.shape[:2]):
        real = np.flatnonzero(REAL[b])
        weights = np.exp([score(query[b, i], key[b, j]) for j in real])
        probabilities[b, i, real] = weights / weights.sum()
        context[b, i] = probabilities[b, i] @ value[b]
    return context, probabilities


def check(layer, score, key=KEY):
    found = layer(QUERY, VALUE, key=key, value_mask=REAL, return_attention_scores=True)
    assert_close(found, by_pairs(score(layer), QUERY, VALUE, key), atol=2e-6)


def built(layer, key=KEY):
    layer(QUERY, VALUE, key=key)
    return spread_weights(layer)


def test_bahdanau():
    def score(layer):
        w, u = (numpy(p.kernel) for p in (layer.query_projection, layer.key_projection))
        return lambda query, key: np.tanh(query @ w + key @ u) @ numpy(layer.scale)[:, 0]

    check(built(AdditiveAttention(5)), score)
    other_size = numbers(4, 2, 7, 9)
    check(built(AdditiveAttention(5), other_size), score, other_size)


def test_luong_dot():
    check(built(LuongAttention("dot")), lambda layer: lambda query, key: query @ key)


def test_luong_general():
    def score(layer):
        return lambda query, key: query @ numpy(layer.key_projection.kernel).T @ key

    other_size = numbers(4, 2, 7, 9)
    check(built(LuongAttention("general"), other_size), score, other_size)


def test_luong_concat():
    def score(layer):
        projections = (layer.query_projection, layer.key_projection)
        w = np.concatenate([numpy(projection.kernel) for projection in projections])
        v = numpy(layer.scale)[:, 0]
        return lambda query, key: v @ np.tanh(w.T @ np.concatenate([query, key]))

    other_size = numbers(4, 2, 7, 9)
    check(built(LuongAttention("concat", units=3), other_size), score, other_size)
    layer = built(LuongAttention("concat"))
    assert layer.scale.shape == (4, 1)
    check(layer, score)


def test_keras_own_layers_with_what_is_projected():
    additive, general = built(AdditiveAttention(5)), built(LuongAttention("general"))
    theirs = keras.layers.AdditiveAttention()
    masks = [None, keras.ops.convert_to_tensor(REAL)]
    inputs = [additive.query_projection(QUERY), VALUE, additive.key_projection(KEY)]
    theirs(inputs)
    theirs.scale.assign(numpy(additive.scale)[:, 0])
    found = numpy(additive(QUERY, VALUE, key=KEY, value_mask=REAL))
    assert_close(found, theirs(inputs, mask=masks), atol=2e-6)
    expected = keras.layers.Attention()([QUERY, VALUE, general.key_projection(KEY)], mask=masks)
    found = numpy(general(QUERY, VALUE, key=KEY, value_mask=REAL))
    assert_close(found, expected, atol=2e-6)


@pytest.mark.parametrize("use_scale", [False, True])
def test_simple_self_attention(use_scale):
    layer = SimpleSelfAttention(use_scale)
    x = numbers(1, 2, 7, 4)
    theirs = keras.layers.Attention()(
        [x / 2 if use_scale else x, x, x], mask=[None, keras.ops.convert_to_tensor(REAL)]
    )
    assert_close(layer(x, x, value_mask=REAL), theirs, atol=2e-6)
    assert not layer.trainable_weights


def test_mistakes_are_told():
    refused("`score` must be one of.*Received: score='sum'", LuongAttention, "sum")
    refused("for the score concat. Received: units=3, score='dot'", LuongAttention, "dot", units=3)
    with pytest.raises(UserError, match="same size. Received: query_features=4, key_features=6"):
        LuongAttention("dot")(QUERY, VALUE)
    with pytest.raises(UserError, match="same size. Received: query_features=4, key_features=6"):
        SimpleSelfAttention()(QUERY, VALUE)
    refused("`units` .* Received: units=0", AdditiveAttention, 0)
