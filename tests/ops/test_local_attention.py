from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops.blockwise.block_layout import WindowLayout
from keras_attn.ops.local_attention import GlobalKeys, local_attention
from tests.backends import thinned
from tests.harness import assert_close
from tests.ops.naive import (
    assert_naive,
    context_and_gradients,
    cut_into_segments,
    largest_tensor,
    naive_attention,
    naive_gradients,
    normal,
)

BATCH, HEADS, KEY_DIM, VALUE_DIM = 2, 3, 5, 7


def inputs(length):
    sizes = {2: KEY_DIM, 3: KEY_DIM, 4: VALUE_DIM, 5: VALUE_DIM}
    return tuple(normal(BATCH, HEADS, length, size, seed=seed) for seed, size in sizes.items())


def near(length, window, is_causal):
    distances = np.arange(length)[None, :] - np.arange(length)[:, None]
    return (np.abs(distances) < window) & ((distances <= 0) | (not is_causal))


# Windows within a block and longer than one; lengths of one block, of several and in between.
@pytest.mark.parametrize("length", thinned([50, 1, 17, 16]))
@pytest.mark.parametrize("window", thinned([4, 1, 17, 20, 99]))
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_under_a_window_mask(length, window, is_causal):
    arrays = inputs(length)
    mask = near(length, window, is_causal)
    found = context_and_gradients(
        lambda *x: local_attention(*x, window, is_causal=is_causal), *arrays
    )
    assert_naive(found, arrays, mask)


@pytest.mark.parametrize("shape", [(BATCH, 1, 50), (BATCH, HEADS, 50)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_masked_keys(shape, is_causal):
    real = np.random.default_rng(7).random(shape) < 0.5
    real[0, :, 10:40] = False  # leaves queries with nothing to attend to
    arrays = inputs(50)[:3]
    found = local_attention(*arrays, 7, key_mask=real, is_causal=is_causal)
    mask = near(50, 7, is_causal) & real[:, :, None]
    assert_naive([ops.convert_to_numpy(found)], arrays, mask)


def in_columns(by_distance, window):
    """(batch, heads, 50, 2 * window - 1) as (batch, heads, 50, 50), 0 outside the window."""
    bias = np.zeros((*by_distance.shape[:2], 50, 50), "float32")
    for i, j in zip(*np.nonzero(near(50, window, False)), strict=True):
        bias[:, :, i, j] = by_distance[
            :, :, i if by_distance.shape[2] > 1 else 0, j - i + window - 1
        ]
    return bias


@pytest.mark.parametrize("window", thinned([7, 1, 17, 24]))
@pytest.mark.parametrize("shape", [(1, HEADS, 1), (BATCH, HEADS, 50)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_bias_by_distance(window, shape, is_causal):
    arrays = inputs(50)[:3]
    bias = normal(*shape, 2 * window - 1)
    found = local_attention(*arrays, window, bias=bias, is_causal=is_causal)
    mask, bias = near(50, window, is_causal), in_columns(bias, window)
    assert_naive([ops.convert_to_numpy(found)], arrays, mask, bias=bias)


@pytest.mark.parametrize("length", thinned([50, 1, 16], 3))
@pytest.mark.parametrize("shape", [(BATCH, 1, 1), (BATCH, HEADS, None)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_global_keys_share_the_softmax(length, shape, is_causal):
    query, key, value, upstream = inputs(length)
    further = normal(BATCH, HEADS, 4, KEY_DIM, seed=6), normal(BATCH, HEADS, 4, VALUE_DIM, seed=7)
    shape = (*shape[:2], length if shape[2] is None else 1, 4)
    mask = np.random.default_rng(8).random(shape) < 0.6
    bias = normal(BATCH, HEADS, length, 4, seed=9)
    real = np.random.default_rng(7).random((BATCH, 1, length)) < 0.5
    near_mask = near(length, 7, is_causal) & real[:, :, None]
    all_masks = [np.broadcast_to(m, (BATCH, HEADS, length, m.shape[-1])) for m in (near_mask, mask)]
    all_masks = np.concatenate(all_masks, axis=-1)
    all_keys = np.concatenate([key, further[0]], axis=2)
    all_values = np.concatenate([value, further[1]], axis=2)
    expected, _ = naive_attention(
        query, all_keys, all_values, all_masks, np.pad(bias, ((0, 0),) * 3 + ((length, 0),))
    )
    options = {"is_causal": is_causal, "global_keys": GlobalKeys(*further, mask, bias)}
    found = local_attention(query, key, value, 7, key_mask=real, **options)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=3e-6)

    def attend(query, *pair):
        near_keys, global_keys = zip(
            *((x[:, :, :length], x[:, :, length:]) for x in pair), strict=True
        )
        further = {"is_causal": is_causal, "global_keys": GlobalKeys(*global_keys)}
        return local_attention(query, *near_keys, 7, **further)

    found = context_and_gradients(attend, query, all_keys, all_values, upstream)
    unmasked = np.concatenate([near(length, 7, is_causal), np.ones((length, 4), bool)], axis=1)
    expected = naive_gradients(query, all_keys, all_values, upstream, unmasked)
    assert_close(found[1:], expected, atol=1e-5)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("compiled", [True, "xla"])
def test_compiled(is_causal, compiled):
    def attend(*arguments):
        return local_attention(*arguments, 7, is_causal=is_causal)

    plain = context_and_gradients(attend, *inputs(50))
    found = context_and_gradients(attend, *inputs(50), compiled=compiled)
    assert_close(found, plain, atol=1e-5)


def test_dropout_keeps_the_expected_context():
    arrays = inputs(50)[:3]
    seed = keras.random.SeedGenerator(3)
    # Each row is a draw of its own.
    many = [np.repeat(array[:1], 400, axis=0) for array in arrays]
    draws = ops.convert_to_numpy(local_attention(*many, 20, dropout=0.5, seed=seed))
    assert np.std(draws, axis=0).min() > 0.01
    expected = ops.convert_to_numpy(local_attention(*arrays, 20))
    np.testing.assert_allclose(np.mean(draws, axis=0), expected[0], atol=0.25)


@pytest.mark.tensorflow
def test_no_tensor_has_more_than_a_few_windows_of_elements():
    """Of all that a graph computes, forward and backward, at a length of 2¹⁶."""
    length, window = 2**16, 128
    attend = partial(local_attention, window=window, is_causal=True)
    largest = largest_tensor(attend, [(1, 2, length, 8)] * 3, differentiated=3)
    assert largest <= 2 * length * 2 * (window - 1 + 127)


@pytest.mark.parametrize(
    ("is_causal", "log2", "by_query"),
    [
        (True, 11, False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((False, 11, False), (False, 13, True), (True, 13, True))
        ),
    ],
)
def test_segments_give_what_the_whole_gives(monkeypatch, is_causal, log2, by_query):
    """One block in each, or two in the first and two, of which one is short, in the second."""
    real = np.random.default_rng(7).random((BATCH, 1, 50)) < 0.5
    mask = np.random.default_rng(8).random((BATCH, 1, 50 if by_query else 1, 4)) < 0.6
    tensors = (
        *inputs(50)[:3],
        normal(BATCH if by_query else 1, HEADS, 50 if by_query else 1, 13),
        normal(BATCH, HEADS, 4, KEY_DIM, seed=6),
        normal(BATCH, HEADS, 4, VALUE_DIM, seed=7),
        normal(BATCH, HEADS, 50, 4, seed=9),
    )

    def attend(query, key, value, bias, global_key, global_value, global_bias):
        global_keys = GlobalKeys(global_key, global_value, mask, global_bias)
        options = {"bias": bias, "is_causal": is_causal, "global_keys": global_keys}
        return local_attention(query, key, value, 7, key_mask=real, **options)

    whole = context_and_gradients(attend, *tensors, inputs(50)[3], compiled=True)
    cut_into_segments(monkeypatch, log2)
    found = context_and_gradients(attend, *tensors, inputs(50)[3], compiled=True)
    assert_close(found, whole, atol=1e-5)


def test_segments_draw_what_they_dropped_again(monkeypatch):
    """The context is linear in the value, whatever is dropped, if the same is dropped."""
    cut_into_segments(monkeypatch, 11)
    query, key, value, upstream = inputs(50)
    found = context_and_gradients(
        lambda *x: local_attention(*x, 20, dropout=0.5, seed=keras.random.SeedGenerator(3)),
        *(query, key, value, upstream),
    )
    np.testing.assert_allclose((found[0] * upstream).sum(), (found[3] * value).sum(), rtol=1e-4)
    # What is dropped differs between the segments.
    ones = (np.ones_like(x) for x in (query, key, value))
    ones = local_attention(*ones, 1, dropout=0.5, seed=keras.random.SeedGenerator(3))
    blocks = ops.convert_to_numpy(ones)[:, :, :48].reshape(BATCH, HEADS, 3, 16, VALUE_DIM)
    assert (blocks[:, :, 0] != blocks[:, :, 1]).any()
    assert (blocks[:, :, 1] != blocks[:, :, 2]).any()


@pytest.mark.parametrize("length", [0, 1, 40, 200])
def test_an_unknown_length_is_cut_as_a_known_one(monkeypatch, length):
    """Little is computed that is padding: segments hold no more blocks than there are."""
    cut_into_segments(monkeypatch, 13)
    known, unknown = (
        WindowLayout.of(value, HEADS, 17, False)
        for value in (length, ops.convert_to_tensor(length, "int32"))
    )
    assert isinstance(known.blocks, int)
    assert not isinstance(unknown.blocks, int)
    assert (int(unknown.blocks), int(unknown.count)) == (known.blocks, known.count)
    assert known.blocks * known.count < max(length, 1) / known.size + known.count


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("is_causal", "jit_compile"), [(False, False), (True, False), (False, True)]
)
def test_an_unknown_length_is_one_block_or_several(is_causal, jit_compile):
    import tensorflow as tf

    further = normal(BATCH, HEADS, 4, KEY_DIM, seed=6), normal(BATCH, HEADS, 4, VALUE_DIM, seed=7)

    def run(query, key, value, upstream, bias):
        options = {"is_causal": is_causal, "global_keys": GlobalKeys(*further)}
        with tf.GradientTape() as tape:
            tape.watch([query, key, value, bias])
            context = local_attention(query, key, value, 7, bias=bias, **options)
        return context, *tape.gradient(context, [query, key, value, bias], upstream)

    of_any = [
        tf.TensorSpec((None, HEADS, None, size))
        for size in (KEY_DIM, KEY_DIM, *[VALUE_DIM] * 2, 13)
    ]
    compiled = tf.function(run, of_any, jit_compile=jit_compile, autograph=False)
    for length in (5, 70) if jit_compile else (1, 5, 48, 49, 70):
        tensors = [
            ops.convert_to_tensor(x) for x in (*inputs(length), normal(BATCH, HEADS, length, 13))
        ]
        assert_close(compiled(*tensors), run(*tensors), atol=2e-5)
