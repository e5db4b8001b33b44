"""Attention over chosen axes of inputs with more than one length; test_from_keras.py judges it."""

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.judges import called
from tests.refusals import refused

QUERY = numbers(1, 2, 3, 5, 7)  # (batch, rows, columns, features)


@pytest.mark.parametrize("axes", [None, 1, 2])
def test_masks_of_positions(axes):
    ours = called(MultiHeadAttention(2, 3, attention_axes=axes), QUERY, QUERY)
    mask = np.random.default_rng(4).random((2, 3, 5)) < 0.7
    mask[0], mask[1, 1, 1] = True, False
    output, scores = ours(
        QUERY, QUERY, value_mask=mask, query_mask=mask, return_attention_scores=True
    )
    changed = np.where(mask[..., None], QUERY, 100.0).astype("float32")
    again = ours(changed, changed, value_mask=mask, query_mask=mask)
    assert_close(numpy(again)[mask], numpy(output)[mask], rtol=3e-6, atol=3e-6)
    # Nothing that is masked gets a share, and what is masked attends to nothing.
    total = numpy(scores).reshape(2, -1).sum(1)
    assert total[0] == pytest.approx(2 * 15, abs=1e-4)
    assert_close(
        numpy(output)[~mask], np.tile(numpy(ours.output_projection.bias), ((~mask).sum(), 1))
    )


def test_one_axis_among_several_may_be_causal():
    ours = MultiHeadAttention(2, 3, attention_axes=2, sliding_window=3)
    ours(QUERY, QUERY)
    output = numpy(ours(QUERY, QUERY, use_causal_mask=True))
    line = MultiHeadAttention(2, 3, sliding_window=3)
    line(QUERY[0], QUERY[0])
    line.set_weights(ours.get_weights())
    rows = QUERY.reshape(6, 5, 7)
    expected = numpy(line(rows, rows, use_causal_mask=True)).reshape(2, 3, 5, 7)
    assert_close(output, expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("axes", [None, 1])
def test_symbolic_shapes_and_unknown_sizes(axes):
    query, value = keras.Input((None, None, 7)), keras.Input((None, None, 7))
    layer = MultiHeadAttention(2, 3, attention_axes=axes)
    symbolic = layer(query, value, return_attention_scores=True)
    lengths = (None,) * (4 if axes is None else 2)
    others = () if axes is None else (None,)
    assert [part.shape for part in symbolic] == [
        (None, None, None, 7),
        (None, *others, 2, *lengths),
    ]
    outputs = keras.Model([query, value], symbolic)([QUERY, QUERY])
    expected = layer(QUERY, QUERY, return_attention_scores=True)
    assert_close(outputs, expected, atol=1e-6)


@pytest.mark.parametrize("axes", [None, 1, -2, (1,), [1]])
def test_with_one_length_every_name_of_it_is_the_same(axes):
    x = numbers(1, 2, 5, 7)
    layer, plain = MultiHeadAttention(2, 3, attention_axes=axes), MultiHeadAttention(2, 3)
    layer(x, x), plain(x, x)
    layer.set_weights(plain.get_weights())
    assert_same(layer(x, x), plain(x, x))


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        (3, {}, "must name axes between batch and features. Received: attention_axes=3, rank=4."),
        ((0, 1), {}, r"Received: attention_axes=\(0, 1\), rank=4."),
        ((1, -3), {}, r"Received: attention_axes=\(1, -3\), rank=4."),
        (
            None,
            {"use_causal_mask": True},
            r"need a single attended axis. Received: attention_axes=\(1, 2\), use_causal",
        ),
        (
            1,
            {"attention_mask": np.ones(3, bool)},
            r"may be left out. Received: shape=\(3,\), attention_axes=\(1,\).",
        ),
        (
            1,
            {"value_mask": np.ones((2, 3), bool)},
            r"`value_mask` must have the shape .* Received: shape=\(2, 3\), input_rank=4.",
        ),
    ],
)
def test_mistakes(axes, options, message):
    refused(message, MultiHeadAttention(2, 3, attention_axes=axes), QUERY, QUERY, **options)
