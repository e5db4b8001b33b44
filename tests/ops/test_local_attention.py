import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops.local_attention import block_size, local_attention
from tests.ops.naive import context_and_gradients, naive_attention, naive_gradients

BATCH, HEADS, KEY_DIM, VALUE_DIM = 2, 3, 5, 7


def normal(*shape, seed=1):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def inputs(length):
    return (
        normal(BATCH, HEADS, length, KEY_DIM, seed=2),
        normal(BATCH, HEADS, length, KEY_DIM, seed=3),
        normal(BATCH, HEADS, length, VALUE_DIM, seed=4),
        normal(BATCH, HEADS, length, VALUE_DIM, seed=5),
    )


def near(length, window, is_causal):
    distances = np.arange(length)[None, :] - np.arange(length)[:, None]
    return (np.abs(distances) < window) & ((distances <= 0) | (not is_causal))


# Windows within a block and longer than one; lengths of one block, of several and in between.
@pytest.mark.parametrize("length", [1, 16, 17, 50])
@pytest.mark.parametrize("window", [1, 4, 17, 20, 99])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_under_a_window_mask(length, window, is_causal):
    arrays = inputs(length)
    mask = near(length, window, is_causal)
    found = context_and_gradients(
        lambda *x: local_attention(*x, window, is_causal=is_causal), *arrays
    )
    context, _ = naive_attention(*arrays[:3], mask)
    np.testing.assert_allclose(found[0], context, atol=3e-6)
    for ours, expected in zip(found[1:], naive_gradients(*arrays, mask), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(BATCH, 1, 50), (BATCH, HEADS, 50)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_masked_keys(shape, is_causal):
    real = np.random.default_rng(7).random(shape) < 0.5
    real[0, :, 10:40] = False  # leaves queries with nothing to attend to
    arrays = inputs(50)[:3]
    found = local_attention(*arrays, 7, key_mask=real, is_causal=is_causal)
    mask = near(50, 7, is_causal) & real[:, :, None]
    expected, _ = naive_attention(*arrays, mask)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=3e-6)


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_bias_by_distance(is_causal):
    arrays, size = inputs(50)[:3], block_size(7)
    by_distance = normal(HEADS, 201)
    at_key = np.arange((2 if is_causal else 3) * size)
    distances = at_key[None, :] - np.arange(size, 2 * size)[:, None]
    found = local_attention(
        *arrays, 7, bias=by_distance[:, distances + 100][None], is_causal=is_causal
    )
    distances = np.arange(50)[None, :] - np.arange(50)[:, None]
    bias = by_distance[:, distances + 100][None]
    expected, _ = naive_attention(*arrays, near(50, 7, is_causal), bias)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=3e-6)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("compiled", [True, "xla"])
def test_compiled(is_causal, compiled):
    arrays = inputs(50)
    plain = context_and_gradients(lambda *x: local_attention(*x, 7, is_causal=is_causal), *arrays)
    found = context_and_gradients(
        lambda *x: local_attention(*x, 7, is_causal=is_causal), *arrays, compiled=compiled
    )
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_dropout_keeps_the_expected_context():
    arrays = inputs(50)[:3]
    seed = keras.random.SeedGenerator(3)
    draws = [
        ops.convert_to_numpy(local_attention(*arrays, 20, dropout=0.5, seed=seed))
        for _ in range(400)
    ]
    assert np.std(draws, axis=0).min() > 0.01
    expected = ops.convert_to_numpy(local_attention(*arrays, 20))
    np.testing.assert_allclose(np.mean(draws, axis=0), expected, atol=0.25)


@pytest.mark.tensorflow
def test_no_tensor_has_more_than_a_few_windows_of_elements():
    """Of all that a graph computes, forward and backward, at a length of 2¹⁶."""
    import tensorflow as tf

    length, window = 2**16, 128

    @tf.function(autograph=False)
    def run(query, key, value):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            context = local_attention(query, key, value, window, is_causal=True)
        return tape.gradient(context, [query, key, value])

    spec = tf.TensorSpec((1, 2, length, 8))
    graph = run.get_concrete_function(spec, spec, spec).graph
    sizes = [
        output.shape.num_elements() or 0
        for operation in graph.get_operations()
        for output in operation.outputs
        if output.shape.is_fully_defined()
    ]
    assert max(sizes) <= 2 * length * 2 * (window - 1 + 127)
