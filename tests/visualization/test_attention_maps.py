"""Attention maps of every family, and of models of somebody else."""

from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import layers, models
from keras_attn.layers.attention.capture import capture_attention
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.visualization import attention_maps, attention_rollout
from keras_attn.visualization.attention_map import AttentionMap
from tests.backends import thinned
from tests.harness import assert_close, assert_same, numpy
from tests.layers.judges import spread_weights
from tests.models.families import CASES, INPUTS, made
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

BLOCKS = {"num_layers": 2, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
IDS = np.array([[5, 7, 3, 9, 2, 4, 8, 6, 3, 9, 5], [4, 6, 2, 7, 5, 3, 0, 0, 0, 0, 0]], "int32")
TOKENS = {"token_ids": IDS}
OTHERS = {
    "Transformer": (lambda: models.Transformer(11, **BLOCKS), INPUTS, 6),
    "encoder": (lambda: models.TransformerEncoder(11, **BLOCKS), TOKENS, 2),
    "Bert": (lambda: models.Bert(11, **BLOCKS), TOKENS, 2),
    "language model": (lambda: models.CausalTransformer(11, **BLOCKS), TOKENS, 2),
    "Reformer": (
        lambda: models.Reformer(11, num_buckets=4, chunk_length=4, learned_positions=16, **BLOCKS),
        TOKENS,
        2,
    ),
    "Transformer-XL": (
        lambda: models.CompressiveTransformer(
            11, segment_length=4, memory_length=4, compressed_length=0, **BLOCKS
        ),
        TOKENS,
        2,
    ),
    "Compressive": (
        lambda: models.CompressiveTransformer(
            11, segment_length=4, memory_length=4, compressed_length=2, compression_rate=2, **BLOCKS
        ),
        TOKENS,
        2,
    ),
    "ETC": (lambda: models.ETC(11, radius=2, num_units=3, unit_length=4, **BLOCKS), TOKENS, 2),
    "patches": (
        lambda: models.PatchEncoder((4, 6), 2, channels=1, **BLOCKS),
        {"images": np.linspace(-1, 1, 48).reshape(2, 4, 6, 1).astype("float32")},
        2,
    ),
}
LAYERS = dict.fromkeys(CASES, 6) | {
    **dict.fromkeys(("additive LSTM", "additive GRU", "Luong", "multi-head, fed", "GNMT"), 1),
    "Luong's dot asked before the step": 1,
    "GNMT, one layer": 1,
    "fixed context": 0,
    "fixed context, biased": 0,
    "intra-attention": 4,
    "T5, version 1.1": 4,
    "Marian, unlike sides": 4,
    "convolutions": 2,
    "wide convolutions": 1,
}


def check(model, inputs, count):
    plain = model(inputs)
    maps = attention_maps(model, inputs)
    for before, after in zip(*map(keras.tree.flatten, (plain, model(inputs))), strict=True):
        assert_same(before, after)
    assert len(maps) == count
    assert len({each.name for each in maps}) == count
    for each in maps:
        sums = each.weights.sum(axis=-1)
        # The first of a cell's steps, and padding, may have nothing to look at.
        assert_close(sums[sums > 0], 1, rtol=1e-4)
        assert (sums[0] > 0).mean() >= 0.8
        hidden = ~each.source_real[:, None, None, :]
        assert not (each.weights * hidden).any()
        assert not (each.example(0).weights[0] * ~each.example(0).reach()).any()
    return maps


@pytest.mark.parametrize("name", thinned(CASES, on_tensorflow=3))
def test_families(name):
    maps = check(made(name), INPUTS, LAYERS[name])
    for each in maps:
        if each.crosses:
            assert each.weights.shape[2:] == (7, 5)
            assert each.example(1).weights.shape[3] == 3  # without padding


@pytest.mark.parametrize("name", OTHERS)
def test_other_models(name):
    make, inputs, count = OTHERS[name]
    maps = check(spread_weights(make()), inputs, count)
    if inputs is TOKENS:
        for each in maps:
            shown = each.example(1)
            assert shown.weights.shape[2] - shown.rows_before == 6


@pytest.mark.parametrize(
    ("make", "inputs"),
    thinned(
        [
            (lambda: made("additive LSTM"), INPUTS),
            (lambda: made("Luong"), INPUTS),
            (lambda: made("T5"), INPUTS),
            (lambda: made("convolutions"), INPUTS),
            (lambda: spread_weights(OTHERS["ETC"][0]()), TOKENS),
            (lambda: spread_weights(OTHERS["Reformer"][0]()), TOKENS),
        ],
        on_tensorflow=2,
    ),
)
def test_a_graph_of_unknown_lengths_captures_the_same(make, inputs):
    import tensorflow as tf

    model, facts = make(), []

    def weights(tensors):
        with capture_attention() as found:
            model(tensors, training=False)
        facts.extend((each.crosses, each.is_causal, each.columns_before) for each in found)
        return [each.weights for each in found]

    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in inputs}
    graph = tf.function(weights, input_signature=[signature], autograph=False)
    found = graph({name: tf.constant(ids) for name, ids in inputs.items()})
    expected = attention_maps(model, inputs)
    assert facts == [(each.crosses, each.is_causal, each.columns_before) for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert_close(one.numpy(), other.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["additive LSTM", "Luong", "GNMT", "intra-attention"])
def test_rows_of_a_loop_are_its_positions(name):
    """A decoder's first rows do not depend on what follows: each step has its own row."""
    whole = attention_maps(made(name), INPUTS)
    short = attention_maps(made(name), INPUTS | {"target_ids": INPUTS["target_ids"][:, :3]})
    for one, other in zip(whole, short, strict=True):
        if one.name.startswith("decoder"):
            assert other.weights.shape[2] == 3
            columns = other.weights.shape[3]
            assert_close(one.weights[:, :, :3, :columns], other.weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_cell_shows_the_positions_of_its_states(backwards):
    cell = layers.IntraAttentionCell(4, 3)
    run = keras.layers.RNN(cell, return_sequences=True, go_backwards=backwards)
    x = np.random.default_rng(2).normal(size=(1, 6, 5)).astype("float32")
    run.build(x.shape)
    spread_weights(run)
    (found,) = attention_maps(keras.Sequential([run]), x)
    # The same, step by step: states of the step before are a row's last ones.
    order = x[:, ::-1] if backwards else x
    states, expected = cell.get_initial_state(1), np.zeros((6, 6))
    for step in range(6):
        hidden = ops.reshape(states[1], (1, 3, 4))
        parts = cell.input_projection(ops.convert_to_tensor(order[:, step]))[:, :4]
        query = parts + cell.read_attention(states[4])
        scores = numpy(ops.tanh(query[:, None] + cell.state_attention(hidden)) @ cell.scale)[
            0, :, 0
        ]
        for slot in range(3):
            if numpy(states[3])[0, slot]:
                expected[step, step - 3 + slot] = np.exp(scores[slot])
        expected[step] /= max(expected[step].sum(), 1e-9)
        _, states = cell(ops.convert_to_tensor(order[:, step]), states)
    expected = expected[::-1, ::-1] if backwards else expected
    assert_close(found.weights[0, 0], expected, rtol=1e-4, atol=1e-6)
    assert found.is_causal is not backwards


class Strange(keras.Model):
    """A model of somebody else, a compiled function in it."""

    def __init__(self):
        import tensorflow as tf

        super().__init__()
        self.embedding = keras.layers.Embedding(11, 6, mask_zero=True)
        block = {"feed_forward": FeedForward(7)}
        self.near = layers.TransformerEncoderBlock(layers.LocalAttention(2, 3, 2), **block)
        self.far = layers.MultiHeadAttention(2, 3)
        self.compiled = tf.function(lambda x: self.far(x, x[:, :4]))

    def call(self, ids):
        x = self.near(self.embedding(ids))
        return self.compiled(x) + self.far(x, x)


def test_a_strangers_model():
    maps = check(Strange(), IDS, 3)
    assert [each.mechanism for each in maps] == ["LocalAttention"] + 2 * ["MultiHeadAttention"]
    assert [each.crosses for each in maps] == [False, True, False]
    assert maps[2].name == maps[1].name + " (2)"
    assert maps[0].example(1).weights.shape == (1, 2, 6, 6)


def test_reach_of_windows_globals_and_order():
    real = np.ones((1, 4), bool)
    reach = partial(AttentionMap, "", "", np.zeros((1, 1, 4, 4), "float32"), real, real)
    near = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]])
    assert_same(reach(pattern={"window": 2}).reach()[0], near)
    assert_same(reach(pattern={"window": 2}, is_causal=True).reach()[0], np.tril(near))
    near[0] = near[:, 0] = 1
    assert_same(reach(pattern={"window": 2, "globals": 1}).reach()[0], near)


def test_padding_of_global_positions_and_of_the_sequence_is_cut_off():
    weights = np.arange(36, dtype="float32").reshape(1, 1, 6, 6)
    real = np.array([[True, False, False, True, True, False]])  # three units, three words
    pattern = {"window": 2, "globals": 3}
    found = AttentionMap(
        "", "", weights, real, real, rows_before=3, columns_before=3, pattern=pattern
    ).example()
    kept = [0, 3, 4]
    assert_same(found.weights[0, 0], weights[0, 0][np.ix_(kept, kept)])
    assert (found.rows_before, found.columns_before, found.pattern["globals"]) == (1, 1, 1)
    assert_same(found.reach()[0], np.ones((3, 3)))
    assert_same(found.source_real, np.ones((1, 3), bool))


def test_rollout_worked_out_by_hand():
    first = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    second = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])  # two heads
    # (A + I) / 2: [[1, 0], [1/4, 3/4]]; then the mean is [[1/2, 1/2], [1, 0]], and so
    # (A + I) / 2: [[3/4, 1/4], [1/2, 1/2]].
    rolled = attention_rollout([first, second])
    assert_close(rolled[0], [[1, 0], [0.25, 0.75]])
    assert_close(rolled[1], [[13 / 16, 3 / 16], [5 / 8, 3 / 8]])
    # A row that looks at nothing stays what it is.
    assert_close(attention_rollout([np.zeros((1, 2, 2))])[0], np.eye(2))


def test_reach_of_segments_is_where_weights_are():
    make, inputs, _ = OTHERS["Compressive"]
    for each in attention_maps(make(), inputs):
        found = each.example(0)
        assert_same(found.weights[0].max(axis=0) > 0, found.reach()[0])


@pytest.mark.parametrize("model", ["nope", None])
def test_what_is_no_model_is_refused(model):
    refused("must be a Keras model or layer. Received: model=", attention_maps, model, IDS)
