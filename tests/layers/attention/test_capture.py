"""What attention layers show to whoever captures it, held against what they compute."""

import numpy as np
import pytest
from keras import ops

from keras_attn import layers
from keras_attn.layers.attention.capture import capture_attention, is_capturing
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.attention.recurrent_state_base import BaseRecurrentStateAttention
from tests.backends import named
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.judges import spread_weights
from tests.layers.mechanisms import MECHANISMS

BATCH, LENGTH, FEATURES = 2, 11, 6
REAL = np.arange(LENGTH)[None] < np.array([[11], [7]])
ON_JAX = {"multi-head", "local", "additive", "linear"}


SCORED = {name for name, each in MECHANISMS.items() if each.scores}


def made(layer, seed=0):
    layer.build((None, None, FEATURES))
    return spread_weights(layer), ops.convert_to_tensor(numbers(seed, BATCH, LENGTH, FEATURES))


def captured(layer, *arguments, **options):
    with capture_attention() as found:
        output = layer(*arguments, **options)
    (shown,) = found
    return output, shown


def slots_of(layer, x):
    """The compressed states of a segmented attention, read segment by segment."""
    attention, size = layer.attention, layer.segment_length
    padding = (0, -LENGTH % size)
    x, real = np.pad(numpy(x), ((0, 0), padding, (0, 0))), np.pad(REAL, ((0, 0), padding))
    memory, slots = attention.initial_memory(BATCH, FEATURES), []
    for start in range(0, x.shape[1], size):
        part = ops.convert_to_tensor(x[:, start : start + size])
        mask = ops.convert_to_tensor(real[:, start : start + size])
        _, memory = attention(part, part, value_mask=mask, memory=memory)
        slots.append(numpy(memory.compressed)[:, -(size // attention.compression_rate) :])
    return np.concatenate(slots[:-1], axis=1)


def output_of(layer, weights, x, is_causal):
    """The layer's output by its weights and its values alone."""
    inner = getattr(layer, "attention", layer)
    if not isinstance(inner, BaseMultiHeadAttention):
        return numpy(weights)[:, 0] @ numpy(x)
    states = numpy(x)
    if isinstance(layer, layers.ConvolvedAttention):
        states = numpy(layer._convolved(x, ops.convert_to_tensor(REAL), is_causal))
    if weights.shape[3] > LENGTH:
        states = np.concatenate([slots_of(layer, x), states], axis=1)
    states = ops.convert_to_tensor(states)
    heads = inner._project(states, states, None)
    context = numpy(weights) @ numpy(heads["value"])
    if isinstance(inner, layers.LongformerAttention):
        of_global = inner._project(states, states, None, projections=inner.global_projections)
        few = slice(0, inner.global_length)
        context[:, :, few] = numpy(weights)[:, :, few] @ numpy(of_global["value"])
    context = ops.convert_to_tensor(context)
    if isinstance(inner, BaseRecurrentStateAttention):
        context = inner._normalized(context, heads)
    return numpy(inner._project_back(context))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", named(MECHANISMS, ON_JAX))
def test_captured_weights_times_values_are_the_layers_output(name, is_causal):
    mechanism = MECHANISMS[name]
    is_causal = is_causal and mechanism.causal
    layer, x = made(mechanism.make())
    options = {"value_mask": ops.convert_to_tensor(REAL), "use_causal_mask": is_causal}
    is_causal = is_causal or mechanism.always_causal
    plain = layer(x, x, **options)
    output, shown = captured(layer, x, x, **options)
    assert_same(output, plain)
    assert shown.layer is layer
    weights, before = numpy(shown.weights), shown.columns_before
    assert weights.shape == (BATCH, weights.shape[1], LENGTH, before + LENGTH)
    found = output_of(layer, weights, x, is_causal)
    np.testing.assert_allclose(found, numpy(output), rtol=1e-4, atol=1e-5)
    assert not weights[1, :, :, before + 7 :].any()
    np.testing.assert_array_equal(numpy(shown.source_real)[:, before:], REAL)
    # Turned by positions weights may be negative; a mixture of blocks may have nothing in places.
    if mechanism.averages and name not in ("linear, rotary", "Sinkhorn"):
        sums = weights.sum(axis=-1)
        np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-5)
        np.testing.assert_allclose(sums[0], 1, rtol=1e-5)
        assert weights.min() >= 0
    if is_causal:
        assert not np.triu(weights[..., before:], k=1).any()
    assert shown.is_causal == is_causal
    assert not shown.crosses


@pytest.mark.parametrize("name", named(sorted(SCORED), SCORED & ON_JAX))
def test_captured_weights_are_the_scores_that_a_layer_returns(name):
    layer, x = made(MECHANISMS[name].make())
    mask = ops.convert_to_tensor(REAL)
    (_, scores), shown = captured(layer, x, x, value_mask=mask, return_attention_scores=True)
    scores = numpy(scores)
    scores = scores[:, None] if scores.ndim == 3 else scores
    np.testing.assert_allclose(numpy(shown.weights), scores, rtol=1e-5, atol=1e-6)


def test_a_softmax_worked_out_by_hand():
    layer = layers.SimpleSelfAttention()
    x = np.array([[[1.0, 0.0], [0.0, 2.0]]], "float32")
    _, shown = captured(layer, x, x)
    e = np.e
    expected = [[e / (e + 1), 1 / (e + 1)], [1 / (1 + e**4), e**4 / (1 + e**4)]]
    np.testing.assert_allclose(numpy(shown.weights)[0, 0], expected, rtol=1e-6)
    assert not shown.crosses


def test_a_window_shows_nothing_outside():
    layer, x = made(layers.LocalAttention(2, 3, 3))
    _, shown = captured(layer, x, x)
    distance = np.abs(np.arange(LENGTH)[:, None] - np.arange(LENGTH))
    assert_same(shown.weights > 0, np.broadcast_to(distance < 3, (BATCH, 2, LENGTH, LENGTH)))
    assert shown.pattern == {"window": 3}


def test_hashed_attention_shows_positions_that_share_a_bucket():
    layer, x = made(layers.LSHAttention(2, 3, num_buckets=4, num_hashes=2, chunk_length=16, seed=1))
    _, shown = captured(layer, x, x)
    buckets = numpy(shown.pattern["buckets"])
    alike = (buckets[..., :, None] == buckets[..., None, :]).any(axis=2)
    others = alike & ~np.eye(LENGTH, dtype=bool)
    alone = ~others.any(axis=-1, keepdims=True)
    met = numpy(shown.weights) > 1e-12
    # A chunk holds the whole sequence; a position looks at itself where there is no other.
    np.testing.assert_array_equal(met, others | (alone & np.eye(LENGTH, dtype=bool)))


def test_global_positions_of_their_own_come_first():
    layer = layers.GlobalLocalAttention(2, 3, radius=1, max_distance=1)
    x, units = (ops.convert_to_tensor(numbers(n, 1, n, FEATURES)) for n in (7, 2))
    layer.build(x.shape, global_query_shape=units.shape)
    spread_weights(layer)
    (output, of_units), shown = captured(layer, x, x, global_query=units)
    assert (shown.rows_before, shown.columns_before) == (2, 2)
    joined = ops.concatenate([units, x], axis=1)
    values = numpy(layer._project(joined, joined, None)["value"])
    contexts = ops.convert_to_tensor(numpy(shown.weights) @ values)
    expected = ops.concatenate([of_units, output], axis=1)
    assert_close(layer._project_back(contexts), expected, rtol=1e-4, atol=1e-5)
    distance = np.abs(np.arange(7)[:, None] - np.arange(7))
    seen = np.ones((9, 9), bool)
    seen[2:, 2:] = distance <= 1
    np.testing.assert_array_equal(numpy(shown.weights)[0, 0] > 0, seen)


def test_a_memory_stands_before_the_segment():
    layer, x = made(layers.RecurrentMemoryAttention(2, 3, memory_length=4))
    memory = layer.initial_memory(BATCH, FEATURES)
    _, memory = layer(x, x, memory=memory)
    _, shown = captured(layer, x, x, memory=memory)
    assert shown.columns_before == 4
    assert not shown.crosses
    assert numpy(shown.weights).shape == (BATCH, 2, LENGTH, 4 + LENGTH)
    assert (numpy(shown.weights)[..., :4] > 0).all()


@pytest.mark.parametrize("name", ["multi-head", "additive", "linear", "Luong, concat"])
def test_attention_to_another_sequence(name):
    layer = MECHANISMS[name].make()
    query, value = numbers(5, 2, 5, FEATURES), numbers(6, 2, 7, FEATURES)
    layer.build(query.shape, value.shape)
    spread_weights(layer)
    real = ops.convert_to_tensor(np.arange(7)[None] < np.array([[7], [3]]))
    _, shown = captured(layer, query, value, value_mask=real)
    with capture_attention() as found:
        source = layer.project_source(ops.convert_to_tensor(value), value_mask=real)
        layer.attend_source(ops.convert_to_tensor(query), source)
    assert shown.crosses
    assert found[0].crosses
    np.testing.assert_allclose(numpy(found[0].weights), numpy(shown.weights), rtol=1e-5, atol=1e-6)
    assert not numpy(shown.weights)[1, :, :, 3:].any()


def test_queries_that_are_padding_look_at_nothing():
    for layer in (layers.MultiHeadAttention(2, 3), layers.LocalAttention(2, 3, 4)):
        layer, x = made(layer)
        real = ops.convert_to_tensor(REAL)
        _, shown = captured(layer, x, x, query_mask=real, value_mask=real)
        assert not numpy(shown.weights)[1, :, 7:].any()
        np.testing.assert_array_equal(numpy(shown.query_real), REAL)


def test_dropout_is_left_out_and_draws_what_it_would_have_drawn():
    outputs = []
    for look in (False, True):
        layer, x = made(layers.MultiHeadAttention(2, 3, dropout=0.5, seed=3))
        if look:
            output, shown = captured(layer, x, x, training=True)
            np.testing.assert_allclose(numpy(shown.weights).sum(axis=-1), 1, rtol=1e-5)
        else:
            output = layer(x, x, training=True)
        outputs.append([numpy(output), numpy(layer(x, x, training=True))])
    np.testing.assert_array_equal(*outputs)


def test_nothing_is_captured_outside_and_after_an_error():
    layer, x = made(layers.MultiHeadAttention(2, 3))
    before = set(vars(layer))
    found = []

    def stopped():
        with capture_attention() as shown:
            layer(x, x)
            found.extend(shown)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped()
    assert not is_capturing()
    layer(x, x)
    assert len(found) == 1
    assert set(vars(layer)) == before


def test_a_capture_inside_another_has_its_calls_alone():
    layer, x = made(layers.MultiHeadAttention(2, 3))
    with capture_attention() as outer:
        with capture_attention() as inner:
            layer(x, x)
        layer(x, x)
    assert (len(outer), len(inner)) == (1, 1)
