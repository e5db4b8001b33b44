"""Attention step by step with a cache equals attention over the whole sequence."""

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from tests.harness import numbers
from tests.layers.judges import numpy, spread_weights

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


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("fused", [True, False])
def test_steps_equal_the_whole(name, fused):
    layer = built(VARIANTS[name], fused)
    x = numbers(1, 2, 11, 7)
    expected = numpy(layer(x, x, use_causal_mask=True))
    cache = layer.initial_cache(2, 13)  # room for more than is used
    for index in range(11):
        output, cache = layer.attend_step(x[:, index : index + 1], cache, index)
        np.testing.assert_allclose(numpy(output)[:, 0], expected[:, index], atol=2e-6)


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
        np.testing.assert_allclose(numpy(output)[:, 0], expected[np.arange(3), position], atol=2e-6)


def test_what_lies_ahead_in_the_cache_does_not_count():
    layer = built({})
    x = numbers(1, 2, 3, 7)
    expected = numpy(layer(x, x, use_causal_mask=True))
    cache = {name: np.full_like(numpy(t), 1e4) for name, t in layer.initial_cache(2, 5).items()}
    for index in range(3):
        output, cache = layer.attend_step(x[:, index : index + 1], cache, index)
        np.testing.assert_allclose(numpy(output)[:, 0], expected[:, index], atol=2e-6)


@pytest.mark.parametrize("name", ["plain", "grouped", "value size", "gate", "chunked"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_projected_source_equals_cross_attention(name, fused):
    layer = built(VARIANTS[name], fused)
    source, query = numbers(2, 2, 11, 7), numbers(3, 2, 5, 7)
    mask = np.arange(11)[None, :] < np.array([[8], [11]])
    expected = numpy(layer(query, source, value_mask=mask))
    projected = layer.project_source(source)
    heads = layer.num_key_value_heads
    assert tuple(projected["key"].shape) == (2, heads, 11, 3)
    assert tuple(projected["value"].shape) == (2, heads, 11, layer.value_dim)
    found = layer.attend_source(query, projected, mask)
    np.testing.assert_allclose(numpy(found), expected, atol=2e-6)


def test_a_projected_source_with_keys_of_its_own():
    layer = MultiHeadAttention(4, 3)
    query, value, key = numbers(1, 2, 5, 7), numbers(2, 2, 11, 13), numbers(3, 2, 11, 17)
    expected = numpy(layer(query, value, key))
    found = layer.attend_source(query, layer.project_source(value, key))
    np.testing.assert_allclose(numpy(found), expected, atol=2e-6)


def test_caches_have_the_compute_dtype():
    layer = built({"num_key_value_heads": 2, "value_dim": 5}, dtype="mixed_bfloat16")
    cache = layer.initial_cache(3, 11)
    shapes = {name: tuple(tensor.shape) for name, tensor in cache.items()}
    assert shapes == {"key": (3, 2, 11, 3), "value": (3, 2, 11, 5)}
    dtypes = {keras.backend.standardize_dtype(tensor.dtype) for tensor in cache.values()}
    assert dtypes == {"bfloat16"}
