"""Attention step by step with a cache equals attention over the whole sequence."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention
from keras_attn.ops.decoding.cache import ancestor_mask, extend_ancestors, initial_ancestors
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.judges import assert_steps, spread_weights
from tests.refusals import refused

VARIANTS = {
    "plain": {},
    "grouped": {"num_key_value_heads": 2},
    "value size": {"value_dim": 5},
    "gate": {"use_gate": True},
    "window": {"sliding_window": 3},
    "chunked": {"flash_attention": True},
    "dropout": {"dropout": 0.5},
}


def built(arguments, fused=True, dtype="float32"):
    layer = MultiHeadAttention(4, 3, dtype=dtype, **arguments)
    layer.build(*[(None, None, 7)] * (1 if fused else 2))
    return spread_weights(layer)


# Room for more than is used, and no room but what is taken.
LENGTHS = [13, None] if keras.backend.backend() == "tensorflow" else [13]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("max_length", LENGTHS)
def test_steps_equal_the_whole(name, fused, max_length):
    layer = built(VARIANTS[name], fused)
    x = numbers(1, 2, 11, 7)
    expected = numpy(layer(x, x, use_causal_mask=True))
    assert_steps(layer.attend_step, layer.initial_cache(2, max_length), x, expected, atol=2e-6)


def test_every_row_may_be_at_a_position_of_its_own():
    layer = built({"num_key_value_heads": 2, "sliding_window": 4})
    x = numbers(1, 3, 11, 7)
    expected = numpy(layer(x, x, use_causal_mask=True))
    start = np.array([0, 2, 5], "int32")
    cache = layer.initial_cache(3, 11)
    for index in range(5):  # the rows' first positions, one at a time, the other rows in place
        position = np.minimum(index, start)
        _, cache = layer.attend_step(x[np.arange(3), position][:, None], cache, position)
    for index in range(6):
        position = start + index
        output, cache = layer.attend_step(x[np.arange(3), position][:, None], cache, position)
        assert_close(numpy(output)[:, 0], expected[np.arange(3), position], atol=2e-6)


def test_what_lies_ahead_in_the_cache_does_not_count():
    layer = built({})
    x = numbers(1, 2, 3, 7)
    expected = numpy(layer(x, x, use_causal_mask=True))
    cache = layer.initial_cache(2, 5)
    cache = type(cache)(*(np.full_like(numpy(tensor), 1e4) for tensor in cache))
    assert_steps(layer.attend_step, cache, x, expected, atol=2e-6)


@pytest.mark.parametrize("name", ["plain", "grouped", "value size", "gate", "chunked"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_projected_source_equals_cross_attention(name, fused):
    layer = built(VARIANTS[name], fused)
    source, query = numbers(2, 2, 11, 7), numbers(3, 2, 5, 7)
    mask = np.arange(11)[None, :] < np.array([[8], [11]])
    expected = numpy(layer(query, source, value_mask=mask))
    projected = layer.project_source(source, value_mask=mask)
    heads = layer.num_key_value_heads
    assert tuple(projected["key"].shape) == (2, heads, 11, 3)
    assert tuple(projected["value"].shape) == (2, heads, 11, layer.value_dim)
    assert_close(layer.attend_source(query, projected), expected, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_source_of_nothing_but_padding_has_a_context_of_zeros(dtype):
    layer = built({"use_bias": False}, fused=False, dtype=dtype)
    source, query = numbers(2, 2, 11, 7), numbers(3, 2, 5, 7)
    mask = np.arange(11)[None, :] < np.array([[0], [11]])
    found = numpy(layer.attend_source(query, layer.project_source(source, value_mask=mask)))
    assert_same(found[0], 0)
    assert np.all(found[1] != 0)


def test_a_projected_source_with_keys_of_its_own():
    layer = MultiHeadAttention(4, 3)
    query, value, key = numbers(1, 2, 5, 7), numbers(2, 2, 11, 13), numbers(3, 2, 11, 17)
    expected = numpy(layer(query, value, key))
    assert_close(layer.attend_source(query, layer.project_source(value, key)), expected, atol=2e-6)


def test_caches_have_the_compute_dtype():
    layer = built({"num_key_value_heads": 2, "value_dim": 5}, dtype="mixed_bfloat16")
    cache = layer.initial_cache(3, 11)
    assert [tuple(tensor.shape) for tensor in cache] == [(3, 2, 11, 3), (3, 2, 11, 5)]
    assert {keras.backend.standardize_dtype(tensor.dtype) for tensor in cache} == {"bfloat16"}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("max_length", LENGTHS)
def test_hypotheses_side_by_side_attend_to_their_ancestors(name, max_length):
    """A search whose survivors descend from parents at random, against whole sequences."""
    layer = built(VARIANTS[name])
    rng = np.random.default_rng(0)
    cache = layer.initial_cache(2, max_length, beams=3)
    ancestors = initial_ancestors(6, max_length)
    histories = np.zeros((6, 0, 7), "float32")
    for index in range(7):
        parents = np.add(rng.integers(0, 3, (2, 3)), [[0], [3]]).ravel()
        new = numbers(10 + index, 6, 1, 7)
        histories = np.concatenate([histories[parents], new], axis=1)
        ancestors = extend_ancestors(
            ops.take(ancestors, parents, axis=0), 3, index, max_length is None
        )
        output, cache = layer.attend_step(
            new.reshape(2, 3, 7), cache, index, ancestor_mask(ancestors, 3)
        )
        expected = numpy(layer(histories, histories, use_causal_mask=True))[:, -1]
        assert_close(numpy(output).reshape(6, 7), expected, atol=2e-6)


def test_caches_grow_on_tensorflow_alone():
    layer = built({})
    if keras.backend.backend() == "tensorflow":
        assert tuple(layer.initial_cache(2).key.shape) == (2, 4, 0, 3)
        return
    refused(r"need TensorFlow; .* Received: .*backend='(jax|torch)'", layer.initial_cache, 2)


def test_a_step_beyond_the_cache_is_refused():
    layer = built({})
    x, cache = numbers(1, 2, 3, 7), layer.initial_cache(2, 2)
    for index in range(2):
        _, cache = layer.attend_step(x[:, :1], cache, index)
    refused("index=2, positions=2", layer.attend_step, x[:, :1], cache, 2)
    _, cache = layer.attend_prompt(x, layer.initial_cache(2, 2), np.ones((2, 3), bool))
    refused("index=2, positions=2", layer.attend_step, x[:, :1], cache, 2)
