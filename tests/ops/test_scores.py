"""Additive scores against loops over pairs, whole and in segments of queries."""

import numpy as np
import pytest

from keras_attn.ops.scores import additive_scores
from tests.harness import assert_close
from tests.ops.naive import context_and_gradients, cut_into_segments, normal

BATCH, UNITS = 2, 3


def naive(query, key, scale, upstream):
    """Scores, and the gradients of query, key and scale, pair by pair."""
    scores = np.zeros((BATCH, query.shape[1], key.shape[1]))
    grads = [np.zeros(array.shape) for array in (query, key, scale)]
    for b, i, j in np.ndindex(scores.shape):
        hidden = np.tanh(query[b, i].astype(float) + key[b, j])
        scores[b, i, j] = hidden @ scale[:, 0]
        of_sum = upstream[b, i, j] * scale[:, 0] * (1 - hidden**2)
        grads[0][b, i] += of_sum
        grads[1][b, j] += of_sum
        grads[2][:, 0] += upstream[b, i, j] * hidden
    return scores, *grads


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("log2", [3, 8, 22])  # one query at a time, 8 or fewer, all at once
@pytest.mark.parametrize(("target", "source"), [(37, 5), (17, 1)])
def test_values_and_gradients(monkeypatch, target, source, log2, compiled):
    cut_into_segments(monkeypatch, log2)
    shapes = (BATCH, target, UNITS), (BATCH, source, UNITS), (UNITS, 1)
    arrays = [normal(*shape, seed=seed) for seed, shape in enumerate(shapes, 1)]
    upstream = normal(BATCH, target, source, seed=4)
    found = context_and_gradients(additive_scores, *arrays, upstream, compiled=compiled)
    assert_close(found, list(naive(*arrays, upstream)), atol=2e-5)


@pytest.mark.tensorflow
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("shape", [(None, None, UNITS), (None, 37, UNITS), (BATCH, None, UNITS)])
def test_sizes_that_a_graph_does_not_know(monkeypatch, shape, jit):
    import tensorflow as tf

    cut_into_segments(monkeypatch, 8)
    query, scale = normal(BATCH, 37, UNITS, seed=1), normal(UNITS, 1, seed=3)
    upstream = normal(BATCH, 37, 37, seed=4)

    @tf.function(input_signature=[tf.TensorSpec(shape)], jit_compile=jit)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = additive_scores(x, x, tf.constant(scale))
        return scores, tape.gradient(scores, x, tf.constant(upstream))

    scores, of_query, of_key, _ = naive(query, query, scale, upstream)
    assert_close(run(query), (scores, of_query + of_key), atol=2e-5)


def test_no_rows():
    shapes = (0, 20, 3), (0, 4, 3), (3, 1)
    scores = additive_scores(*(np.ones(shape, "float32") for shape in shapes))
    assert scores.shape == (0, 20, 4)
