"""Where theory says that a mechanism is dense attention, it is; loops over positions judge it."""

import numpy as np
import pytest

from keras_attn import layers
from tests.harness import numbers, numpy
from tests.layers.judges import (
    back_to_features,
    called,
    heads_by_role,
    naive_attention,
    softmax_by_rows,
)
from tests.layers.mechanisms import MECHANISMS

X = numbers(1, 2, 13, 6)
REAL = np.arange(13)[None, :] < np.array([[9], [13]])
PAIRS = REAL[:, None, :, None] & REAL[:, None, None, :]
MASKS = {False: PAIRS, True: PAIRS & np.tril(np.ones((13, 13), bool))}  # by whether it is causal


def check(layer, expected, **options):
    found = numpy(layer(X, X, query_mask=REAL, value_mask=REAL, **options))
    np.testing.assert_allclose(found, expected, atol=5e-6)


def dense(layer, is_causal=False):
    return naive_attention(layer, X, X, mask=MASKS[is_causal])[0]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [13, 14, 40])
def test_a_window_as_long_as_the_sequence(window, is_causal):
    layer = called(layers.LocalAttention(2, 3, window), X, X)
    check(layer, dense(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize(("radius", "global_length"), [(12, 1), (1, 13), (1, 40), (11, 4)])
def test_all_near_or_all_global(radius, global_length):
    layer = called(layers.GlobalLocalAttention(2, 3, radius, global_length), X, X)
    layer.label_keys.assign(np.zeros(layer.label_keys.shape))
    check(layer, dense(layer))


@pytest.mark.parametrize(
    "positions",
    [layers.RelativePositionBias(2), layers.TransformerXLPositions(2, 3)],
    ids=["relative", "Transformer-XL"],
)
def test_positions_that_have_learned_nothing(positions):
    layer = called(layers.MultiHeadAttention(2, 3, relative_positions=positions), X, X)
    for weight in layer.relative_positions.weights:
        weight.assign(np.zeros(weight.shape))
    check(layer, dense(layer))


@pytest.mark.parametrize("is_causal", [False, True])
def test_memories_before_the_first_segment(is_causal):
    for layer in (
        layers.RecurrentMemoryAttention(2, 3, 4),
        layers.CompressiveMemoryAttention(2, 3, 4, 2),
    ):
        called(layer, X, X)
        for weight in layer.relative_positions.weights:
            weight.assign(np.zeros(weight.shape))
        masks = {"query_mask": REAL, "value_mask": REAL, "use_causal_mask": is_causal}
        found, _ = layer(X, X, memory=layer.initial_memory(2, 6), **masks)
        np.testing.assert_allclose(numpy(found), dense(layer, is_causal), atol=5e-6)


def of_others(layer, is_causal):
    """Queries that are keys too, of length 1; a position attends to itself only in need."""
    heads = heads_by_role(layer, X)
    keys = heads["query"] / np.linalg.norm(heads["query"], axis=-1, keepdims=True)
    scores = np.einsum("bhid,bhjd->bhij", heads["query"], keys) - 1e5 * np.eye(13)
    return back_to_features(layer, softmax_by_rows(scores, MASKS[is_causal]) @ heads["value"])


@pytest.mark.parametrize("is_causal", [False, True])
def test_hashing_into_one_bucket(is_causal):
    layer = called(layers.LSHAttention(2, 3, num_buckets=2, num_hashes=2, chunk_length=13), X, X)
    layer.rotations.assign(np.zeros(layer.rotations.shape))
    check(layer, of_others(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
def test_hashing_often_enough(is_causal):
    """Every pair meets in some round, and in none do all of them."""
    layer = called(layers.LSHAttention(2, 3, num_buckets=2, num_hashes=16, chunk_length=13), X, X)
    rotations = np.random.default_rng(9).normal(size=layer.rotations.shape)
    layer.rotations.assign(rotations)
    layer.projections[0].bias.assign(np.full(layer.projections[0].bias.shape, 0.7))
    query = heads_by_role(layer, X)["query"]
    sides = np.einsum("bhld,hdr->bhrl", query, rotations[..., 0]) > 0
    meet = sides[..., :, None] == sides[..., None, :]  # (batch, heads, rounds, length, length)
    assert meet.any(axis=2).all()
    assert not meet.all(axis=(-1, -2)).all(axis=(0, 1)).any()
    check(layer, of_others(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
def test_linear_attention(is_causal):
    """Equation 4 of the paper: weights φ(q)ᵀ φ(k) by their sum, φ(x) = elu(x) + 1."""
    layer = called(layers.LinearAttention(2, 3), X, X)
    heads = heads_by_role(layer, X)
    context = np.zeros(heads["value"].shape)
    features = {
        role: np.where(heads[role] > 0, heads[role] + 1, np.exp(np.minimum(heads[role], 0)))
        for role in ("query", "key")
    }
    for b, h, i in np.ndindex(2, 2, 13):
        seen = np.flatnonzero(MASKS[is_causal][b, 0, i])
        weights = np.array([features["query"][b, h, i] @ features["key"][b, h, j] for j in seen])
        if len(seen):
            context[b, h, i] = weights / weights.sum() @ heads["value"][b, h, seen]
    check(layer, back_to_features(layer, context), use_causal_mask=is_causal)


def turned(x, position):
    """Features (a, b) as complex numbers a + bi, turned by the position at two speeds."""
    pairs = (x[:2] + 1j * x[2:]) * np.exp(1j * position / 10_000 ** np.array([0, 0.5]))
    return np.concatenate([pairs.real, pairs.imag])


@pytest.mark.parametrize("is_causal", [False, True])
def test_linear_attention_turned_by_positions(is_causal):
    """Equation 19 of RoFormer: turned above the line, not below it."""
    layer = called(layers.LinearAttention(2, 4, relative_positions=layers.RotaryEmbedding()), X, X)
    heads = heads_by_role(layer, X)
    context = np.zeros(heads["value"].shape)
    query, key = (
        np.where(heads[role] > 0, heads[role] + 1, np.exp(np.minimum(heads[role], 0)))
        for role in ("query", "key")
    )
    for b, h, i in np.ndindex(2, 2, 13):
        seen = np.flatnonzero(MASKS[is_causal][b, 0, i])
        for j in seen:
            weight = turned(query[b, h, i], i) @ turned(key[b, h, j], j)
            divisor = query[b, h, i] @ key[b, h, seen].sum(axis=0)
            context[b, h, i] += weight / divisor * heads["value"][b, h, j]
    check(layer, back_to_features(layer, context), use_causal_mask=is_causal)


WITH_SCORES = {name: m for name, m in MECHANISMS.items() if m.scores}


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", WITH_SCORES)
def test_outputs_are_averages_by_the_scores(name, is_causal):
    layer = called(WITH_SCORES[name].make(), X, X)
    masks = {"query_mask": REAL, "value_mask": REAL, "use_causal_mask": is_causal}
    output, scores = map(numpy, layer(X, X, return_attention_scores=True, **masks))
    scores = scores if scores.ndim == 4 else scores[:, None]
    allowed = np.broadcast_to(MASKS[is_causal], scores.shape)
    assert not scores[~allowed].any()
    np.testing.assert_allclose(scores.sum(-1), allowed.any(-1), atol=2e-6)
    if hasattr(layer, "output_projection"):
        expected = back_to_features(layer, scores @ heads_by_role(layer, X)["value"])
    else:
        expected = (scores @ X[:, None])[:, 0]
    np.testing.assert_allclose(output, expected, atol=5e-6)
