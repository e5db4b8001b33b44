"""Masks of MultiHeadAttention: nothing to attend to, propagation, causal alignment, float16."""

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from tests.harness import numbers, numpy
from tests.layers.judges import called, naive_attention, spread_weights

X = numbers(1, 2, 5, 7)
SOURCE = numbers(2, 2, 11, 13)
IDS = np.array([[4, 9, 2, 0, 0], [3, 1, 5, 7, 8]], "int32")


def identity_output(layer, bias):
    """Makes the output projection pass the context on, plus `bias`."""
    size = layer.num_heads * layer.value_dim
    layer.output_projection.set_weights([np.eye(size), np.full(size, bias)])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"dropout": 0.3}, {"flash_attention": True}])
@pytest.mark.parametrize("kind", ["attention_mask", "query_mask", "value_mask"])
def test_nothing_to_attend_to_gives_nothing(dtype, training, arguments, kind):
    layer = called(MultiHeadAttention(3, 2, output_shape=6, dtype=dtype, **arguments), X, SOURCE)
    identity_output(layer, 0.25)
    masks = {
        "attention_mask": np.ones((2, 5, 11), bool),
        "query_mask": np.ones((2, 5), bool),
        "value_mask": np.ones((2, 11), bool),
    }
    mask = masks[kind]
    empty = (1, 3) if kind != "value_mask" else (1,)
    mask[empty] = False
    scores = None
    if "flash_attention" in arguments:
        output = layer(X, SOURCE, training=training, **{kind: mask})
    else:
        output, scores = layer(
            X, SOURCE, return_attention_scores=True, training=training, **{kind: mask}
        )
    output = numpy(output).astype("float32")
    assert np.isfinite(output).all()
    np.testing.assert_array_equal(output[empty], 0.25)
    assert (np.abs(output[0] - 0.25) > 0.01).any(axis=-1).all()
    if scores is not None:
        scores = numpy(scores).astype("float32")
        rows = scores[1, :, 3] if kind != "value_mask" else scores[1]
        np.testing.assert_array_equal(rows, 0)
        np.testing.assert_allclose(scores[0].sum(-1), 1, atol=0.02)


def test_gradients_stay_finite_where_there_is_nothing_to_attend_to():
    layer = MultiHeadAttention(3, 2)
    inputs = keras.Input((5, 7))
    mask = keras.Input((5, 5), dtype="bool")
    outputs = layer(inputs, inputs, attention_mask=mask)
    model = keras.Model([inputs, mask], outputs)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    allowed = np.ones((2, 5, 5), bool)
    allowed[1] = False
    model.fit([X, allowed], np.zeros((2, 5, 7)), epochs=2, verbose=0)
    assert all(np.isfinite(numpy(weight)).all() for weight in model.weights)


def test_an_explicit_query_mask_counts():
    layer = called(MultiHeadAttention(3, 2), X, SOURCE)
    query_mask = np.array([[True] * 5, [True, False, True, True, False]])
    expected, _ = naive_attention(layer, X, SOURCE, mask=query_mask[:, None, :, None])
    np.testing.assert_allclose(numpy(layer(X, SOURCE, query_mask=query_mask)), expected, atol=2e-6)


@pytest.mark.parametrize("functional", [False, True])
def test_masks_that_keras_propagates_are_honoured(functional):
    embedding = keras.layers.Embedding(11, 7, mask_zero=True)
    layer = MultiHeadAttention(3, 2)
    embedded = embedding(IDS)
    layer(embedded, embedded)
    spread_weights(layer)
    if functional:
        ids = keras.Input((None,), dtype="int32")
        x = embedding(ids)
        output = keras.Model(ids, layer(x, x))(IDS)
    else:
        output = layer(embedded, embedded)
    real = IDS != 0
    vectors = numpy(embedded)
    both = real[:, None, :, None] & real[:, None, None, :]
    expected, _ = naive_attention(layer, vectors, vectors, mask=both)
    np.testing.assert_allclose(numpy(output), expected, atol=2e-6)


def test_the_mask_of_the_query_goes_on():
    embedding = keras.layers.Embedding(11, 7, mask_zero=True)
    output, scores = MultiHeadAttention(3, 2)(embedding(IDS), SOURCE, return_attention_scores=True)
    np.testing.assert_array_equal(numpy(output._keras_mask), IDS != 0)
    assert getattr(scores, "_keras_mask", None) is None


@pytest.mark.parametrize(("target", "source"), [(1, 4), (3, 7), (7, 3)])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("flash_attention", [False, True])
def test_the_causal_mask_is_aligned_to_the_last_key(target, source, window, flash_attention):
    layer = MultiHeadAttention(3, 2, sliding_window=window, flash_attention=flash_attention)
    query, value = numbers(3, 2, target, 7), numbers(4, 2, source, 7)
    layer(query, value)
    spread_weights(layer)
    mask = np.zeros((target, source), bool)
    for row in range(target):
        last = row + source - target
        first = 0 if window is None else last - window + 1
        mask[row, max(first, 0) : max(last + 1, 0)] = True
    expected, _ = naive_attention(layer, query, value, mask=mask)
    found = numpy(layer(query, value, use_causal_mask=True))
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("flash_attention", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
def test_float16_stays_finite_past_its_largest_number(dtype, flash_attention):
    layer = MultiHeadAttention(
        1, 4, use_bias=False, output_shape=4, dtype=dtype, flash_attention=flash_attention
    )
    x = np.array([[[1.0, 0.0], [0.5, 1.0], [-1.0, 2.0]]])  # (1, length, 2)
    layer(x, x)
    query_key = np.concatenate([np.full((1, 4), 300.0), np.zeros((1, 4))])
    value = np.concatenate([np.zeros((1, 4)), np.ones((1, 4))])
    projection, source = layer.projections
    projection.kernel.assign(query_key)
    source.kernel.assign(np.concatenate([query_key, value], axis=1))
    layer.output_projection.kernel.assign(np.eye(4))
    # Scaled scores of the first query: 4 * 300 * 300 / sqrt(4) = 180,000, then 90,000, -180,000.
    assert 4 * 300 * 300 / 2 > 65504  # the largest number of float16
    output = numpy(layer(x, x))
    assert np.isfinite(output).all()
    np.testing.assert_array_equal(output[0, 0], 0.0)  # the value at the first key
    np.testing.assert_array_equal(output[0, 2], 2.0)  # negated, the last one wins


def test_a_single_key_gets_everything():
    layer = MultiHeadAttention(3, 2)
    one = SOURCE[:, :1]
    output, scores = layer(X, one, return_attention_scores=True)
    np.testing.assert_array_equal(numpy(scores), np.ones((2, 3, 5, 1)))
    expected, _ = naive_attention(layer, X, one)
    np.testing.assert_allclose(numpy(output), expected, atol=2e-6)
