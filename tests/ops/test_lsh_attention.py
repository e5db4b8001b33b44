"""LSH attention against the definition of the Reformer's paper, set by set."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops.hash_rounds import hash_buckets
from keras_attn.ops.lsh_attention import lsh_attention
from tests.backends import quick, thinned
from tests.harness import assert_close, assert_same
from tests.ops.naive import context_and_gradients, cut_into_segments, largest_tensor, normal

BATCH, HEADS, KEY_DIM, VALUE_DIM, BUCKETS, CHUNK = 2, 2, 5, 3, 4, 4


def inputs(length, rounds=3):
    return (
        normal(BATCH, HEADS, length, KEY_DIM, seed=2),
        normal(BATCH, HEADS, length, VALUE_DIM, seed=3),
        normal(HEADS, KEY_DIM, rounds, BUCKETS // 2, seed=4),
    )


def naive_buckets(query, rotations):
    batch, heads, length, _ = query.shape
    buckets = np.zeros((batch, heads, rotations.shape[2], length), int)
    for b, h, r, i in np.ndindex(buckets.shape):
        rotated = query[b, h, i] @ rotations[h, :, r]
        buckets[b, h, r, i] = np.argmax(np.concatenate([rotated, -rotated]))
    return buckets


def naive(query, value, rotations, real, is_causal):
    """Section 2 of the paper: sets of keys by round, their union, itself only in need.

    A key in several rounds counts once, so the attention is the softmax over the union of the
    sets, for each query by itself. Causally the sets are the last CHUNK of the bucket before it.
    """
    query, value = np.asarray(query, "float64"), np.asarray(value, "float64")
    batch, heads, length, _ = query.shape
    buckets = naive_buckets(query, np.asarray(rotations, "float64"))
    context = np.zeros(value.shape)
    for b, h in np.ndindex(batch, heads):
        union = [set() for _ in range(length)]
        for bucket in buckets[b, h]:
            order = sorted((i for i in range(length) if real[b, i]), key=lambda i: (bucket[i], i))
            chunk = {i: place // CHUNK for place, i in enumerate(order)}
            for i in order:
                alike = [j for j in order if bucket[j] == bucket[i]]
                if is_causal:
                    union[i] |= {i, *[j for j in alike if j < i][-CHUNK:]}
                else:
                    union[i] |= {j for j in alike if chunk[i] - 1 <= chunk[j] <= chunk[i]}
        for i in range(length):
            others = sorted(union[i] - {i}) or sorted(union[i])
            if others:
                keys = query[b, h, others]
                keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
                weights = np.exp(keys @ query[b, h, i])
                context[b, h, i] = weights / weights.sum() @ value[b, h, others]
    return context


@pytest.mark.parametrize("length", thinned([11, 1, 24, 4]))
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_papers_definition(length, rounds, is_causal):
    arrays = inputs(length, rounds)
    found = ops.convert_to_numpy(lsh_attention(*arrays, CHUNK, is_causal=is_causal))
    real = np.ones((BATCH, length), bool)
    assert_close(found, naive(*arrays, real, is_causal), atol=3e-6)


@pytest.mark.parametrize("is_causal", [False, True])
def test_masked_positions_change_nothing(is_causal):
    query, value, rotations = inputs(24)
    real = np.random.default_rng(5).random((BATCH, 24)) < 0.6
    found = lsh_attention(query, value, rotations, CHUNK, real[:, None], is_causal)
    found = ops.convert_to_numpy(found)
    assert_close(found, naive(query, value, rotations, real, is_causal), atol=3e-6)
    assert not found.swapaxes(1, 2)[~real].any()


def test_what_follows_does_not_count():
    """Not even by the chunks that it would move; and what follows has no gradient, exactly."""
    query, value, rotations = inputs(24)
    attend = quick(lambda q, v: lsh_attention(q, v, rotations, CHUNK, is_causal=True))
    whole = ops.convert_to_numpy(attend(query, value))
    for end in (1, 5, 12, 18, 23):
        assert_close(attend(query[:, :, :end], value[:, :, :end]), whole[:, :, :end], atol=1e-6)
    upstream = np.concatenate([np.ones_like(value)[:, :, :9], np.zeros_like(value)[:, :, 9:]], 2)
    _, query_grad, _, value_grad = context_and_gradients(
        lambda q, _, v: lsh_attention(q, v, rotations, CHUNK, is_causal=True) + 0 * ops.sum(_),
        query,
        query,
        value,
        upstream,
    )
    assert not query_grad[:, :, 9:].any()
    assert not value_grad[:, :, 9:].any()


def test_buckets():
    query, _, rotations = inputs(11)
    found = ops.convert_to_numpy(hash_buckets(ops.convert_to_tensor(query), rotations))
    assert_same(found, naive_buckets(query, rotations))


@pytest.mark.parametrize("is_causal", [False, True])
def test_one_bucket_in_one_chunk_is_attention_to_all_others(is_causal):
    """Against softmax over all pairs but those of a position with itself, with its gradient."""
    query, value, _ = inputs(9)
    zeros = np.zeros((HEADS, KEY_DIM, 2, 1), "float32")  # hash everything alike

    def dense(query, _, value):
        keys = query / ops.norm(query, axis=-1, keepdims=True)
        scores = ops.matmul(query, ops.swapaxes(keys, -1, -2))
        scores = scores - 1e5 * ops.eye(9)
        if is_causal:
            scores = ops.where(np.tril(np.ones((9, 9), bool)), scores, -1e30)
        return ops.matmul(ops.softmax(scores), value)

    def ours(query, _, value):
        return lsh_attention(query, value, zeros, 9, is_causal=is_causal)

    arrays = (query, query, value, normal(BATCH, HEADS, 9, VALUE_DIM, seed=6))
    for compiled in (False, True):
        found = context_and_gradients(
            lambda *x: ours(*x) + 0 * ops.sum(x[1]), *arrays, compiled=compiled
        )
        expected = context_and_gradients(lambda *x: dense(*x) + 0 * ops.sum(x[1]), *arrays)
        assert_close(found, expected, atol=1e-5)


@pytest.mark.parametrize("is_causal", [False, True])
def test_segments_are_the_whole(is_causal, monkeypatch):
    """Chunks see across the borders of segments, but not across those of rounds."""
    length = 150  # segments of one chunk, and hashed 64 positions at a time
    query, value, rotations = inputs(length)
    real = np.random.default_rng(5).random((BATCH, length)) < 0.8
    upstream = normal(BATCH, HEADS, length, VALUE_DIM, seed=6)

    def found(query, value, upstream):
        return context_and_gradients(
            lambda q, _, v: (
                lsh_attention(q, v, rotations, CHUNK, real[:, None], is_causal) + 0 * ops.sum(_)
            ),
            *(query, query, value, upstream),
            compiled=True,
        )

    whole = found(query, value, upstream)
    assert_close(whole[0], naive(query, value, rotations, real, is_causal), atol=3e-6)
    cut_into_segments(monkeypatch, 4)
    assert_close(found(query, value, upstream), whole, atol=1e-5)


@pytest.mark.parametrize("is_causal", thinned([False, True]))
def test_dropout_in_segments(is_causal, monkeypatch):
    """The backward pass drops what the forward pass dropped: the gradient of a sum of values."""
    query, value, rotations = inputs(40)
    cut_into_segments(monkeypatch, 8)
    seed = keras.random.SeedGenerator(3)
    context, _, _, value_gradient = context_and_gradients(
        lambda q, _, v: (
            lsh_attention(q, v, rotations, CHUNK, is_causal=is_causal, dropout=0.5, seed=seed)
            + 0 * ops.sum(_)
        ),
        *(query, query, value, np.ones_like(value)),
    )
    plain = ops.convert_to_numpy(lsh_attention(query, value, rotations, CHUNK, None, is_causal))
    assert np.abs(context - plain).max() > 0.1
    # The context is linear in the values.
    assert_close((value * value_gradient).sum(), context.sum(), rtol=1e-4)
    # What is dropped differs between the segments.
    ones = (np.ones_like(x)[:, :, :32] for x in (query, value))
    kept = lsh_attention(*ones, rotations[:, :, :1], CHUNK, dropout=0.5, seed=seed)
    kept = ops.convert_to_numpy(kept).reshape(BATCH, HEADS, 2, 16, VALUE_DIM)
    assert (kept[:, :, 0, 8:] != kept[:, :, 1, 8:]).any()


@pytest.mark.tensorflow
def test_memory_is_linear_in_the_length():
    """No tensor of a graph, forward and backward, has more elements than pairs within windows."""
    length, chunk, rounds = 2**14, 64, 2
    shapes = ((1, 1, length, 8), (1, 1, length, 8), (1, 8, rounds, 16))
    largest = largest_tensor(lambda *tensors: lsh_attention(*tensors, chunk), shapes, 2)
    assert largest <= rounds * length * 2 * chunk
