"""RecurrentMemoryAttention: segments with a memory against one long sequence."""

import warnings

import keras
import numpy as np
import pytest

from keras_attn.layers import (
    AlibiBias,
    MultiHeadAttention,
    RecurrentMemoryAttention,
    RotaryEmbedding,
)
from tests.harness import numbers, numpy
from tests.layers.judges import assert_steps, called
from tests.refusals import refused

X = numbers(1, 2, 12, 6)
POSITIONS = {"Transformer-XL": None, "rotary": RotaryEmbedding(), "ALiBi": AlibiBias(2)}


def built(memory_length=4, **arguments):
    return called(RecurrentMemoryAttention(2, 4, memory_length, **arguments), X, X + 0)


def by_segments(layer, x, length, **arguments):
    """Outputs of segments one after the other, side by side, and the last memory."""
    memory, outputs = layer.initial_memory(len(x), 6), []
    for start in range(0, x.shape[1], length):
        segment = x[:, start : start + length]
        output, memory = layer(segment, segment, memory=memory, use_causal_mask=True, **arguments)
        outputs.append(numpy(output))
    return np.concatenate(outputs, axis=1), memory


def window_mask(length, segment, memory_length):
    """Which positions a position sees: its segment up to itself, and the memory before that."""
    at = np.arange(length)
    start = at // segment * segment
    return (at[None] <= at[:, None]) & (at[None] >= (start - memory_length)[:, None])


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(("segment", "memory_length"), [(4, 4), (4, 7), (4, 2), (3, 12), (5, 3)])
def test_segments_see_their_memory(positions, segment, memory_length):
    """Attention over the whole stream under a mask of what segments and memories reach."""
    layer = built(memory_length, relative_positions=POSITIONS[positions])
    found, memory = by_segments(layer, X, segment)
    mask = np.stack([window_mask(12, segment, memory_length)] * 2)
    expected = numpy(layer(X, X, attention_mask=mask))
    np.testing.assert_allclose(found, expected, atol=5e-6)
    kept = min(memory_length, 12)
    np.testing.assert_array_equal(numpy(memory.states)[:, -kept:], X[:, -kept:])
    assert numpy(memory.real)[:, -kept:].all()
    assert not numpy(memory.real)[:, :-kept].any()


def test_padding_is_not_remembered():
    layer = built(6)
    mask = np.arange(4)[None, :] < np.array([[3], [4]])
    _, memory = layer(X[:, :4], X[:, :4], value_mask=mask, memory=layer.initial_memory(2, 6))
    np.testing.assert_array_equal(numpy(memory.real)[:, 2:], mask)
    found, _ = layer(X[:, 4:8], X[:, 4:8], memory=memory, use_causal_mask=True)
    without = np.concatenate(
        [np.ones((2, 4, 4), bool) & mask[:, None], np.ones((2, 4, 4), bool)], 2
    )
    without &= np.tril(np.ones((8, 8), bool))[4:]
    expected = numpy(layer(X[:, :8], X[:, :8], attention_mask=_square(without)))[:, 4:]
    np.testing.assert_allclose(numpy(found), expected, atol=5e-6)


def _square(rows):
    return np.concatenate([np.ones((2, 4, 8), bool), rows], axis=1)


def test_a_mask_and_scores_of_a_segment_with_a_memory():
    layer = built(5)
    _, memory = by_segments(layer, X[:, :4], 4)
    mask = np.random.default_rng(1).random((2, 4, 4)) < 0.6
    (_, scores), _ = layer(
        X[:, 4:8], X[:, 4:8], attention_mask=mask, memory=memory, return_attention_scores=True
    )
    scores = numpy(scores)
    assert scores.shape == (2, 2, 4, 9)
    assert not scores[:, :, :, 0].any()  # of which the memory has nothing yet
    assert not scores[..., 5:][np.broadcast_to(~mask[:, None], (2, 2, 4, 4))].any()
    assert scores[..., 1:5].all()


def test_no_gradient_reaches_the_memory():
    layer = built(4)
    first, second = keras.Input((4, 6)), keras.Input((4, 6))
    states = keras.layers.Dense(6, name="before")(first)
    real = keras.ops.ones_like(states[..., 0], dtype="bool")
    output, _ = layer(second, second, memory=type(layer.initial_memory(1, 6))(states, real))
    model = keras.Model([first, second], keras.layers.Dense(1)(output))
    model.compile("sgd", "mse")
    before = numpy(model.get_layer("before").kernel)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Gradients do not exist")  # TensorFlow warns
        model.fit([X[:, :4], X[:, 4:8]], np.ones((2, 4, 1)), verbose=0)
    np.testing.assert_array_equal(numpy(model.get_layer("before").kernel), before)


def test_without_a_memory_it_is_multi_head_attention():
    layer = built(relative_positions=RotaryEmbedding())
    judge = MultiHeadAttention(2, 4, relative_positions=RotaryEmbedding())
    judge(X, X + 0)
    judge.set_weights(layer.get_weights())
    np.testing.assert_array_equal(numpy(layer(X, X)), numpy(judge(X, X)))


def test_mistakes_are_told():
    refused("`memory_length` .* Received: memory_length=0", RecurrentMemoryAttention, 2, 3, 0)


@pytest.mark.parametrize("positions", POSITIONS)
def test_steps_after_a_memory_equal_the_segment(positions):
    layer = built(6, relative_positions=POSITIONS[positions], num_key_value_heads=1)
    mask = np.arange(4)[None, :] < np.array([[3], [4]])
    _, memory = layer(X[:, :4], X[:, :4], value_mask=mask, memory=layer.initial_memory(2, 6))
    segment = X[:, 4:9]
    expected, _ = layer(segment, segment, memory=memory, use_causal_mask=True)
    cache = layer.initial_cache(2, 8, memory=memory)
    assert_steps(layer.attend_step, cache, segment, expected)
    refused("single beam. Received: beams=2", layer.initial_cache, 2, 8, beams=2, memory=memory)
