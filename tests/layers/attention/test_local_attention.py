"""LocalAttention against MultiHeadAttention with a window; what it refuses."""

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

POSITIONS = {
    "none": None,
    "rotary": layers.RotaryEmbedding(50.0),
    "relative": layers.RelativePositionBias(2, 8, 5),
    "ALiBi": layers.AlibiBias(2),
}


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [5, 41])
def test_equals_dense_attention_under_a_window(positions, is_causal, length):
    arguments = {"sliding_window": 7, "relative_positions": POSITIONS[positions]}
    local, dense = (
        layer(2, 4, **arguments) for layer in (layers.LocalAttention, layers.MultiHeadAttention)
    )
    x = numbers(1, 2, length, 6)
    local(x, x)
    dense(x, x)
    spread_weights(local)
    dense.set_weights(local.get_weights())
    mask = np.arange(length)[None, :] < np.array([[length - 2], [length]])
    masks = {"query_mask": mask, "value_mask": mask, "use_causal_mask": is_causal}
    np.testing.assert_allclose(numpy(local(x, x, **masks)), numpy(dense(x, x, **masks)), atol=5e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_rows_at_positions_of_their_own(positions):
    layer = layers.LocalAttention(2, 4, 4, relative_positions=POSITIONS[positions])
    x = numbers(1, 2, 9, 6)
    layer(x, x)
    spread_weights(layer)
    whole = numpy(layer(x, x, use_causal_mask=True))
    start = np.array([0, 3], "int32")
    key = [numpy(part) for part in layer.initial_cache(2)]
    _, state = layer.attend_step(x[1:, :1], layer.initial_cache(1), 0)
    for index in (1, 2):
        _, state = layer.attend_step(x[1:, index : index + 1], state, index)
    cache = type(state)(
        *(np.concatenate([a[:1], numpy(b)]) for a, b in zip(key, state, strict=True))
    )
    for step in range(5):
        at = start + step
        output, cache = layer.attend_step(x[np.arange(2), at][:, None], cache, at)
        np.testing.assert_allclose(numpy(output)[:, 0], whole[np.arange(2), at], atol=5e-6)


def test_the_cache_is_as_long_as_the_window():
    cache = layers.LocalAttention(2, 4, 5, value_dim=3).initial_cache(7, max_length=1000)
    assert [tuple(part.shape) for part in cache] == [(7, 2, 5, 4), (7, 2, 5, 3), (7,)]


def test_mistakes_are_told():
    refused("`sliding_window` .* Received: sliding_window=0", layers.LocalAttention, 2, 3, 0)
    with pytest.raises(UserError, match=r"`value` as long as .*value_shape=\(2, 7, 6\)"):
        layers.LocalAttention(2, 3, 4)(numbers(1, 2, 5, 6), numbers(1, 2, 7, 6))
