"""Additive scores against loops over pairs, whole and in segments of queries."""

import numpy as np
import pytest

import keras_attn.ops.blockwise.segments as segments
from keras_attn.ops.scores import additive_scores
from tests.ops.naive import context_and_gradients

BATCH, UNITS = 2, 3


def normal(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


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
    monkeypatch.setattr(segments, "SEGMENT_LOG2", log2)
    monkeypatch.setattr(segments, "SEGMENT_LOG2_OF_ACCELERATORS", log2)
    arrays = (
        normal(BATCH, target, UNITS, seed=1),
        normal(BATCH, source, UNITS, seed=2),
        normal(UNITS, 1, seed=3),
    )
    upstream = normal(BATCH, target, source, seed=4)
    found = context_and_gradients(additive_scores, *arrays, upstream, compiled=compiled)
    for ours, theirs in zip(found, naive(*arrays, upstream), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.tensorflow
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("shape", [(None, None, UNITS), (None, 37, UNITS), (BATCH, None, UNITS)])
def test_sizes_that_a_graph_does_not_know(monkeypatch, shape, jit):
    import tensorflow as tf

    monkeypatch.setattr(segments, "SEGMENT_LOG2", 8)
    monkeypatch.setattr(segments, "SEGMENT_LOG2_OF_ACCELERATORS", 8)
    query, scale = normal(BATCH, 37, UNITS, seed=1), normal(UNITS, 1, seed=3)
    upstream = normal(BATCH, 37, 37, seed=4)

    @tf.function(input_signature=[tf.TensorSpec(shape)], jit_compile=jit)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = additive_scores(x, x, tf.constant(scale))
        return scores, tape.gradient(scores, x, tf.constant(upstream))

    scores, of_query, of_key, _ = naive(query, query, scale, upstream)
    for ours, theirs in zip(run(query), (scores, of_query + of_key), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_no_rows():
    scores = additive_scores(
        np.ones((0, 20, 3), "float32"), np.ones((0, 4, 3), "float32"), np.ones((3, 1), "float32")
    )
    assert scores.shape == (0, 20, 4)
