"""TransformerXLPositions: the paper's score, pair by pair."""

import math

import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention, TransformerXLPositions
from keras_attn.ops.positions import relative_shift
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import called, spread_weights
from tests.refusals import refused

X = numbers(1, 2, 7, 6)


def waves(distance, width):
    """Sines and cosines by turns, as "Attention Is All You Need" has them."""
    angles = [distance / 10_000 ** (2 * (i // 2) / width) for i in range(width)]
    return np.array([(math.cos if i % 2 else math.sin)(a) for i, a in enumerate(angles)])


def test_scores_of_the_paper():
    """(q + u)ᵀ k + (q + v)ᵀ W r for each query, key and head, in float64."""
    layer = called(MultiHeadAttention(2, 3, relative_positions=TransformerXLPositions(2, 3)), X, X)
    positions = layer.relative_positions
    w = numpy(positions.kernel).astype("float64").reshape(6, 2, 3)
    u, v = (numpy(b)[:, 0] for b in (positions.content_bias, positions.position_bias))
    (query,) = layer.projections[0](X)
    key, _ = layer.projections[1](X)
    query, key = numpy(query), numpy(key)
    found = numpy(layer(X, X, return_attention_scores=True)[1])
    for b, h, i in np.ndindex(2, 2, 7):
        q = query[b, h, i]
        scores = [
            ((q + u[h]) @ key[b, h, j] + (q + v[h]) @ (waves(i - j, 6) @ w[:, h])) / 3**0.5
            for j in range(7)
        ]
        expected = np.exp(scores) / np.sum(np.exp(scores))
        np.testing.assert_allclose(found[b, h, i], expected, atol=2e-6)


@pytest.mark.parametrize(("target", "source"), [(4, 4), (1, 5), (3, 7), (5, 2)])
def test_shift(target, source):
    """Numbers that say their own distance come to stand where the distance is."""
    distances = (source - 1) - np.arange(target + source - 1)
    scores = np.tile(distances, (1, 1, target, 1)).astype("float32")
    found = numpy(relative_shift(ops.convert_to_tensor(scores), source))[0, 0]
    at_query = np.arange(target) + source - target
    expected = at_query[:, None] - np.arange(source)[None, :]
    np.testing.assert_array_equal(found, expected)


def test_positions_of_rows_equal_consecutive_ones():
    layer = TransformerXLPositions(2, 3)
    query = numbers(1, 2, 2, 5, 3)
    at_query, at_key = np.arange(2, 7, dtype="int32"), np.arange(7, dtype="int32")
    layer(query, query)
    spread_weights(layer)
    whole = numpy(layer.bias(query, ops.convert_to_tensor(at_query), ops.convert_to_tensor(at_key)))
    rows = [ops.convert_to_tensor(np.stack([at, at])) for at in (at_query, at_key)]
    np.testing.assert_allclose(numpy(layer.bias(query, *rows)), whole, atol=2e-6)


def test_mistakes_are_told():
    with pytest.raises(UserError, match="Received: relative_positions_num_heads=4, num_heads=2"):
        MultiHeadAttention(2, 3, relative_positions=TransformerXLPositions(4, 3))
    refused("`key_dim` .* Received: key_dim=0", TransformerXLPositions, 2, 0)
