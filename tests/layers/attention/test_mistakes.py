"""Mistakes that all mechanisms tell in one line: where they are put, and what they are given."""

from functools import partial

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.attention.recurrent_memory_attention import Memory
from keras_attn.layers.recurrent.attentive_decoder import AttentiveDecoder
from tests.harness import assert_close, assert_same, numbers
from tests.layers.mechanisms import MECHANISMS
from tests.refusals import refused_in_one_line as refused

X = numbers(1, 2, 5, 6)
CROSSES = [name for name, mechanism in MECHANISMS.items() if mechanism.crosses]
WITHOUT_WEIGHTS = ("simple", "Luong, dot")
STAYS = [name for name in MECHANISMS if name not in CROSSES]


decoder = partial(
    layers.TransformerDecoderBlock, layers.MultiHeadAttention(2, 3), layers.FeedForward(4)
)


@pytest.mark.parametrize("name", STAYS)
def test_attention_within_one_sequence_is_refused_for_a_source(name):
    attention = MECHANISMS[name].make()
    refused("`cross_attention` must .*Received: cross_attention=", decoder, attention)


@pytest.mark.parametrize("name", STAYS)
def test_attention_within_one_sequence_is_refused_by_recurrent_decoders(name):
    given = "lstm", 4, 1, MECHANISMS[name].make()
    refused("`attention` must .*Received: attention=", AttentiveDecoder, *given)


@pytest.mark.parametrize("name", CROSSES)
def test_attention_to_another_sequence_is_taken(name):
    attention = MECHANISMS[name].make()
    decoder(attention)


def test_a_window_is_refused_for_a_source():
    attention = layers.MultiHeadAttention(2, 3, sliding_window=2)
    refused("`cross_attention` must have no sliding window: .*sliding_window=2", decoder, attention)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in WITHOUT_WEIGHTS])
def test_features_of_another_size(name):
    attention = MECHANISMS[name].make()
    attention(X, X)
    narrow = X[..., :4]
    with pytest.raises(ValueError, match="value 6.*received input with shape"):
        attention(narrow, narrow)


SEQUENTIAL = keras.Sequential([keras.layers.Dense(6)])


@pytest.mark.parametrize("given", [keras.layers.Dense(6), SEQUENTIAL, "dense", None])
@pytest.mark.parametrize(
    "block",
    [layers.TransformerEncoderBlock, layers.TransformerDecoderBlock, layers.ReversibleBlock],
)
def test_what_is_no_attention_is_refused_by_blocks(block, given):
    message = "attention` must be an attention layer, called with query, value"
    refused(message, block, given, layers.FeedForward(4))


def test_attention_of_keras_is_taken():
    attention = keras.layers.MultiHeadAttention(2, 3)
    block = layers.TransformerEncoderBlock(attention, layers.FeedForward(4))
    assert block(X).shape == X.shape


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mask_of_another_length(name):
    mechanism = MECHANISMS[name]
    layer = mechanism.make()
    layer(X, X)
    for mask, shape in (("value_mask", (2, 4)), ("key_mask", (2, 6)), ("query_mask", (2, 3))):
        message = f"`{mask}` does not fit the other inputs. Received: {mask}_shape"
        refused(message, layer, X, X, **{mask: np.ones(shape, bool)})
    other = np.ones((2, 1, 7), bool)
    refused("`attention_mask` does not fit the other inputs.", layer, X, X, attention_mask=other)
    if not getattr(layer, "can_cross", True) and not isinstance(layer, layers.MultiHeadAttention):
        message = "`value` does not fit the other inputs. Received: .*(5|None), None"
        refused(message, layer, X, X[:, :4])


@pytest.mark.parametrize("name", MECHANISMS)
def test_inputs_that_are_no_sequences(name):
    refused("batch, length, features", MECHANISMS[name].make(), X[0], X[0])


TAKES_NONE = {
    "lsh": partial(layers.LSHAttention, 2, 4, 2),
    "global-local": partial(layers.GlobalLocalAttention, 2, 4, 1),
    "dense synthesizer": partial(layers.DenseSynthesizer, 2, 4, 8),
    "mixture": partial(layers.SynthesizerMixture, 2, 4, 8),
    "simple": layers.SimpleSelfAttention,
    "additive": partial(layers.AdditiveAttention, 4),
}


@pytest.mark.parametrize("name", TAKES_NONE)
def test_relative_positions_where_there_is_no_use_for_them(name):
    message = "does not take `relative_positions`: .*='RotaryEmbedding'"
    refused(message, TAKES_NONE[name], relative_positions=layers.RotaryEmbedding())
    assert TAKES_NONE[name](relative_positions=None)(X, X).shape == X.shape


@pytest.mark.parametrize(
    "make",
    [
        partial(layers.MultiHeadAttention, 2, 3),
        partial(layers.LocalAttention, 2, 3, 2),
        partial(layers.RecurrentMemoryAttention, 2, 3, 4),
    ],
)
def test_relative_positions_that_do_not_fit(make):
    for message, positions in (
        ("`relative_positions` must be a RotaryEmbedding, ", keras.layers.Dense(3)),
        ("`relative_positions` must be a RotaryEmbedding, ", layers.SinusoidalPositionEncoding()),
        ("`relative_positions` must be a RotaryEmbedding, ", layers.LearnedPositionEmbedding(9)),
        ("`key_dim` must be even. Received: key_dim=3", layers.RotaryEmbedding()),
        ("as many heads as the attention. .*num_heads=4", layers.AlibiBias(4)),
        ("attention's `key_dim`. .*_key_dim=5, key_dim=3", layers.TransformerXLPositions(2, 5)),
    ):
        refused(message, make, relative_positions=positions)
    make, alibi = partial(layers.LinearAttention, 2, 3), layers.AlibiBias(2)
    refused("Attention takes a RotaryEmbedding .*='AlibiBias'", make, relative_positions=alibi)


def test_memories_that_are_none():
    recurrent = layers.RecurrentMemoryAttention(2, 3, 4)
    compressive = layers.CompressiveMemoryAttention(2, 3, 4, 2)
    recurrent(X, X)
    compressive(X, X)
    real, states = np.zeros((2, 3), bool), np.zeros((2, 4, 6), "float32")
    longer = layers.CompressiveMemoryAttention(2, 3, 4, 5).initial_memory(2, 6)
    for layer, memory, message in (
        (recurrent, X, "`memory` must be a Memory, .*Received: memory="),
        (recurrent, Memory(states[:, :3], real), "`states` .* the shape .*2, 3, 6.*2, 4, 6"),
        (recurrent, Memory(states, real), "`real` of `memory` .* the shape .*2, 3.*2, 4"),
        (recurrent, Memory(None, None), "`states` of `memory` must have the shape .*shape=None"),
        (compressive, recurrent.initial_memory(2, 6), "a CompressiveMemory, .*memory='Memory'"),
        (compressive, longer, "`compressed` of `memory` .* the shape .*2, 5, 6.*2, 2, 6"),
    ):
        refused(message, layer, X, X, memory=memory)


def test_a_synthesizer_that_is_too_short():
    inputs = keras.Input((9, 6))
    message = "not be longer than `max_length`. Received: length=9, max_length=8"
    refused(message, layers.DenseSynthesizer(2, 3, 8), inputs, inputs)


def test_members_of_a_mixture():
    message = "`members` must be a tuple of some of .*Received: members='random'"
    refused(message, layers.SynthesizerMixture, 2, 3, 8, members="random")


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mask_of_one_is_for_all(name):
    layer = MECHANISMS[name].make()
    expected = layer(X, X)
    for masks in (
        {"value_mask": np.ones((2, 1), bool)},
        {"key_mask": np.ones((1, 1), bool)},
        {"query_mask": np.ones((1, 5), bool)},
        {"attention_mask": np.ones((2, 1, 1), bool)},
        {"value_mask": [[True] * 5] * 2},
    ):
        assert_close(layer(X, X, **masks), expected, atol=1e-6, err_msg=str(masks))
    nothing = layer(X, X, value_mask=np.zeros((2, 1), bool))
    assert_same(nothing, layer(X, X, value_mask=np.zeros((2, 5), bool)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_batches_and_ranks_that_do_not_fit(name):
    layer = MECHANISMS[name].make()
    layer(X, X)
    three = np.concatenate([X, X[:1]])
    for value, key, masks in (
        (three, None, {}),
        (X[:1], None, {}),
        (X, three, {}),
        (X, None, {"value_mask": np.ones((3, 5), bool)}),
        (X, None, {"query_mask": np.ones((3, 5), bool)}),
        (X, None, {"attention_mask": np.ones((1, 4), bool)}),
        (X, None, {"attention_mask": np.ones((3, 1, 5), bool)}),
        (X, None, {"attention_mask": np.ones((2, 3, 1, 5), bool)}),
        (X, None, {"value_mask": [[True] * 4] * 2}),
    ):
        refused("does not fit the other inputs. .*expected=", layer, X, value, key, **masks)
    for masks in (
        {"query_mask": np.ones(5, bool)},
        {"value_mask": np.ones((2, 1, 5), bool)},
        {"attention_mask": np.ones(5, bool)},
        {"value_mask": True},
    ):
        refused("must have rank ", layer, X, X, **masks)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_symbolic_call_looks_at_masks(name):
    inputs, mask = keras.Input((5, 6)), keras.Input((4,), dtype="bool")
    layer = MECHANISMS[name].make()
    refused("`value_mask` does not fit the other inputs", layer, inputs, inputs, value_mask=mask)


class Crossing(keras.layers.Layer):
    """Somebody's attention that knows nothing of causal masks and builds itself."""

    def call(self, query, value, attention_mask=None, training=None):
        return query + keras.ops.mean(value, axis=1, keepdims=True)


def test_a_strangers_attention_to_another_sequence():
    block = decoder(Crossing())
    assert block(X, X[:, :3]).shape == X.shape
    message = "called with query, value, attention_mask, use_causal_mask"
    refused(message, layers.TransformerDecoderBlock, Crossing(), layers.FeedForward(4))


def test_a_part_that_gives_back_other_features():
    block = decoder(layers.AdditiveAttention(4))
    refused("must give back the features .*given=6, given_back=4", block, X, X[..., :4])
