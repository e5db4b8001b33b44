"""Synthesizers: the paper's formulas by loops, lengths, steps beyond what a model needs."""

from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from keras_attn import layers
from tests.harness import numbers, numpy
from tests.layers.judges import assert_steps, called
from tests.refusals import refused

X = numbers(1, 2, 5, 6)


def probabilities(layer, **arguments):
    return numpy(layer(X, X, return_attention_scores=True, **arguments)[1])


def dense_row(scores, x, head, output=0):
    """Equation 1 for one vector: W₂ relu(W₁ x + b₁) + b₂."""
    units, output = scores.units, scores.projections[output]
    columns = slice(head * units, (head + 1) * units)
    hidden = x @ numpy(scores.hidden.kernel)[:, columns]
    hidden = np.maximum(hidden + numpy(scores.hidden.bias)[columns], 0)
    return hidden @ numpy(output.kernel)[head] + numpy(output.bias)[head, 0]


def test_dense():
    layer = called(layers.DenseSynthesizer(2, 3, 8), X, X)
    found = probabilities(layer)
    for b, h, i in np.ndindex(2, 2, 5):
        expected = softmax(dense_row(layer.scores, X[b, i], h)[:5], axis=-1)
        np.testing.assert_allclose(found[b, h, i], expected, atol=1e-6)


def test_factorized_dense():
    layer = called(layers.FactorizedDenseSynthesizer(2, 3, 8, factor=2), X, X)
    assert [output.length for output in layer.scores.projections] == [4, 2]
    found = probabilities(layer)
    for b, h, i in np.ndindex(2, 2, 5):
        first, second = (dense_row(layer.scores, X[b, i], h, output) for output in (0, 1))
        scores = np.array([first[j // 2] * second[j % 2] for j in range(5)])
        np.testing.assert_allclose(found[b, h, i], softmax(scores, axis=-1), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (layers.DenseSynthesizer, 6 * 6 + 6 * 8),
        (partial(layers.FactorizedDenseSynthesizer, factor=2), 6 * 6 + 6 * (4 + 2)),
        (layers.RandomSynthesizer, 2 * 8 * 8),
        (partial(layers.FactorizedRandomSynthesizer, rank=3), 2 * 2 * 8 * 3),
    ],
)
def test_parameters_as_the_paper_counts_them(make, expected):
    """d² + d n, d² + d (k₁ + k₂), and for each head n² and 2 n k, beside values and output."""
    layer = make(2, 3, 8, use_bias=False)
    layer(X, X)
    assert layer.scores.count_params() == expected


@pytest.mark.parametrize(("length", "factor"), [(16, 4), (12, 3), (7, 1), (1, 1)])
def test_the_factor_is_near_the_square_root(length, factor):
    assert layers.FactorizedDenseSynthesizer(2, 3, length).factor == factor


@pytest.mark.parametrize("trainable_scores", [True, False])
def test_random(trainable_scores):
    layer = layers.RandomSynthesizer(2, 3, 8, trainable_scores, scores_initializer="random_normal")
    layer(X, X)
    scores = numpy(layer.scores.scores)
    assert scores.shape == (2, 8, 8)
    expected = softmax(scores[:, :5, :5], axis=-1)
    np.testing.assert_allclose(probabilities(layer), np.stack([expected] * 2), atol=1e-6)
    assert len(layer.non_trainable_weights) == (not trainable_scores)


def test_factorized_random():
    layer = called(layers.FactorizedRandomSynthesizer(2, 3, 8, rank=3), X, X)
    rows, columns = numpy(layer.scores.rows), numpy(layer.scores.columns)
    expected = softmax(np.einsum("hik,hjk->hij", rows, columns)[:, :5, :5], axis=-1)
    np.testing.assert_allclose(probabilities(layer)[1], expected, atol=1e-6)


def heads_of(layer, role):
    projection = next(p for p in layer.projections if role in p.heads)
    return projection(X, roles=(role,))[0]


def test_mixture():
    """The weighted sum before the softmax: section 3.1.5."""
    members = ("dense", "random", "dot_product")
    layer = called(layers.SynthesizerMixture(2, 3, 8, members), X, X)
    dense, random, _ = layer.scores
    weights = softmax(numpy(layer.mixture), axis=-1)
    query, key = (numpy(heads_of(layer, role)) for role in ("query", "key"))
    found = probabilities(layer)
    for b, h, i in np.ndindex(2, 2, 5):
        parts = (
            dense_row(dense, X[b, i], h)[:5],
            numpy(random.scores)[h, i, :5],
            query[b, h, i] @ key[b, h].T / 3**0.5,
        )
        scores = sum(weight * part for weight, part in zip(weights, parts, strict=True))
        np.testing.assert_allclose(found[b, h, i], softmax(scores, axis=-1), atol=1e-6)


def parts(layer):
    return [*layer.projections, layer.output_projection]


def test_a_mixture_of_the_dot_product_alone_is_multi_head_attention():
    layer = called(layers.SynthesizerMixture(2, 3, 8, ("dot_product",)), X, X)
    judge = layers.MultiHeadAttention(2, 3)
    judge(X, X)
    for ours, theirs in zip(parts(layer), parts(judge), strict=True):
        theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(numpy(layer(X, X)), numpy(judge(X, X)), atol=1e-6)


def test_sequences_share_random_scores_and_differ_in_dropout():
    layer = layers.RandomSynthesizer(2, 3, 8, dropout=0.5, seed=3)
    same = np.stack([X[0], X[0]])
    first, second = numpy(layer(same, same))
    np.testing.assert_array_equal(first, second)
    first, second = numpy(layer(same, same, training=True))
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize(
    "layer", [layers.DenseSynthesizer(2, 3, 8), layers.RandomSynthesizer(2, 3, 8)]
)
def test_a_cache_of_the_greatest_length_behind_a_prompt(layer):
    """It has more slots than there are positions; those never filled are not looked up."""
    called(layer, X, X)
    whole = numpy(layer(X, X, use_causal_mask=True))
    prompt = np.array([[True, True, True], [True, False, False]])
    _, cache = layer.attend_prompt(X[:, :3], layer.initial_cache(2, 8), prompt)
    rows, at = [[0], [1]], [[3, 4], [1, 2]]
    assert_steps(layer.attend_step, cache, X[rows, at], whole[rows, at], atol=1e-6)


def test_mistakes_are_told():
    layer = layers.DenseSynthesizer(2, 3, 4)
    refused("`max_length`. Received: length=5, max_length=4", layer, X, X)
    refused("`max_length`. Received: length=5, max_length=4", layer.initial_cache, 2, 5)
    layer = layers.DenseSynthesizer(2, 3, 8)
    refused(r"`value` as long as .*value_shape=\(2, 4, 6\)", layer, X, X[:, :4])
    message = "must divide .*Received: factor=3, max_length=8"
    refused(message, layers.FactorizedDenseSynthesizer, 2, 3, 8, factor=3)
    refused("Did you mean 'random'", layers.SynthesizerMixture, 2, 3, 8, ("randon",))
    refused("`members` must be a tuple of some of", layers.SynthesizerMixture, 2, 3, 8, ())
