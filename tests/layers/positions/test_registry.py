"""Relative positions that are chosen by name."""

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.attention.registry import named_attention
from keras_attn.layers.positions.registry import POSITIONS
from keras_attn.validation import UserError
from tests.harness import numbers, numpy

X = numbers(1, 2, 7, 8)
MADE = {
    "rotary": layers.RotaryEmbedding,
    "relative_bias": lambda: layers.RelativePositionBias(2),
    "alibi": lambda: layers.AlibiBias(2),
    "transformer_xl": lambda: layers.TransformerXLPositions(2, 4),
}


def test_every_kind_has_a_name():
    assert set(MADE) == set(POSITIONS)


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [("dense", name) for name in POSITIONS]
    + [("local", name) for name in POSITIONS if name != "transformer_xl"],
)
def test_a_name_stands_for_the_layer(mechanism, name):
    named = named_attention(mechanism, 2, 4, 7, relative_positions=name)
    made = named_attention(mechanism, 2, 4, 7, relative_positions=MADE[name]())
    for layer in (named, made):
        layer(X, X)
    assert [weight.path.split("/")[1:] for weight in named.weights] == [
        weight.path.split("/")[1:] for weight in made.weights
    ]
    for seed, weights in enumerate(zip(named.weights, made.weights, strict=True)):
        for weight in weights:
            weight.assign(numbers(seed, *weight.shape) / 4)
    np.testing.assert_array_equal(numpy(named(X, X)), numpy(made(X, X)))
    without = named_attention(mechanism, 2, 4, 7)
    without(X, X)
    ours = {weight.path.split("/", 1)[1]: weight for weight in named.weights}
    for weight in without.weights:
        weight.assign(ours[weight.path.split("/", 1)[1]])
    assert np.abs(numpy(named(X, X)) - numpy(without(X, X))).max() > 1e-4


@pytest.mark.parametrize("mechanism", ["recurrent_memory", "compressive_memory"])
def test_memories_take_them_too(mechanism):
    layer = named_attention(mechanism, 2, 4, 7, relative_positions="alibi")
    assert isinstance(layer.attention.relative_positions, layers.AlibiBias)
    assert layer(X, X).shape == X.shape


def test_arguments_of_positions():
    described = {"name": "rotary", "scaling_factor": 2.0}
    layer = named_attention("linear", 2, 4, 7, relative_positions=described)
    assert layer.relative_positions.scaling_factor == 2.0


@pytest.mark.parametrize(
    ("mechanism", "described", "message"),
    [
        ("dense", "rotari", "`relative_positions` must be one of .*Did you mean 'rotary'"),
        ("dense", {}, "`relative_positions` must have a name"),
        ("dense", {"name": "alibi", "buckets": 3}, "relative_positions alibi.*buckets"),
        ("dense", {"name": "rotary", "scaling_factor": "two"}, "rotary cannot be made"),
        ("linear", "alibi", "LinearAttention takes a RotaryEmbedding"),
        ("lsh", "rotary", "LSHAttention does not take `relative_positions`"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(mechanism, described, message):
    with pytest.raises(UserError, match=rf"\A[^\n]*{message}[^\n]*\Z"):
        named_attention(mechanism, 2, 4, 7, relative_positions=described)
