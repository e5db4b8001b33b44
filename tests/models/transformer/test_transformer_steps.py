"""Decoding step by step equals the whole forward pass."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search
from keras_attn.layers import (
    LinearAttention,
    LocalAttention,
    MultiHeadAttention,
    RelativePositionBias,
    TransformerXLPositions,
)
from keras_attn.models import Transformer
from tests.backends import named, quick, thinned
from tests.generation.toy_models import compiled
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import descended
from tests.refusals import refused

SIZES = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
SOURCE = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned positions": {"learned_positions": 13},
    "rotary positions": {"rotary_positions": True},
    "two vocabularies": {"target_vocabulary_size": 13, "norm_first": True},
    "grouped": {
        "self_attention": MultiHeadAttention(4, 3, num_key_value_heads=2, value_dim=5),
        "cross_attention": MultiHeadAttention(4, 3, num_key_value_heads=1),
    },
    "window": {"self_attention": MultiHeadAttention(2, 3, sliding_window=3)},
    "relative": {
        "self_attention": MultiHeadAttention(2, 3, relative_positions=RelativePositionBias(2, 8, 5))
    },
    "Transformer-XL": {
        "self_attention": MultiHeadAttention(2, 3, relative_positions=TransformerXLPositions(2, 3))
    },
    "linear": {"self_attention": LinearAttention(2, 3), "cross_attention": LinearAttention(2, 5)},
    "local": {"self_attention": LocalAttention(2, 3, 3)},
    "dropout": {"dropout": 0.5},
}


ON_JAX = ("post-norm", "rotary positions", "grouped", "linear", "local")
SOME = named(VARIANTS, ON_JAX, others=9)

# Numbers of beams with caches of a fixed length, and with caches that grow.
ROOMS = [(3, 9), pytest.param(1, 9, marks=pytest.mark.slow)]
if keras.backend.backend() == "tensorflow":
    ROOMS += [(1, None), pytest.param(3, None, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(("beams", "max_length"), ROOMS)
def test_steps_equal_the_whole(name, beams, max_length):
    model = spread_weights(Transformer(11, **(SIZES | VARIANTS[name])))
    sources = np.repeat(SOURCE, beams, axis=0)
    state = model.initial_state(SOURCE, max_length, beams)
    # What belongs to a source is held once.
    held = keras.tree.flatten([state["source"]["caches"], state["source"]["projected"]])
    assert {part.shape[0] for part in held if part is not None} == {2}
    history, found = descended(quick(model.step), state, beams)
    expected = numpy(model({"source_ids": sources, "target_ids": history}))
    np.testing.assert_allclose(found, expected, atol=3e-5)


@pytest.mark.parametrize(("beams", "max_length"), ROOMS)
def test_a_compiled_search_equals_an_eager_one(beams, max_length):
    """What graph optimisation makes of a step computes what the step says."""
    model = Transformer(
        23, num_layers=2, hidden_dim=32, num_heads=4, intermediate_dim=64, dropout=0.1
    )
    spread_weights(model)

    def search(source_ids):
        state = model.initial_state(source_ids, max_length, beams)
        if beams == 1:
            return greedy_search(model.step, state, 1, 2, max_length=9, min_length=6)
        return beam_search(model.step, state, beams, 1, 2, max_length=9, min_length=6, n_best=beams)

    expected = search(ops.convert_to_tensor(SOURCE))
    found = compiled(search)(ops.convert_to_tensor(SOURCE))
    np.testing.assert_array_equal(found.token_ids, expected.token_ids)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
    assert np.all(numpy(found.lengths) >= 6)


def test_rows_may_be_at_positions_of_their_own():
    model = spread_weights(Transformer(11, **SIZES))
    target = np.random.default_rng(1).integers(1, 11, (2, 7)).astype("int32")
    expected = numpy(model({"source_ids": SOURCE, "target_ids": target}))
    state, step = model.initial_state(SOURCE, 7), quick(model.step)
    for index in range(9):  # the second row is three positions late
        position = np.array([min(index, 6), max(index - 3, 0)], "int32")
        logits, state = step(target[[0, 1], position], state, position)
        np.testing.assert_allclose(numpy(logits), expected[[0, 1], position], atol=3e-5)


@pytest.mark.parametrize("learned", thinned([307, None]))
def test_bfloat16_past_position_256(learned):
    """The cached path rounds as the whole one does, and tells late positions apart."""
    model = Transformer(
        11, learned_positions=learned, dtype="bfloat16", **(SIZES | {"num_layers": 1})
    )
    target = np.full((1, 300), 4, "int32")  # one token over and over: only positions tell
    inputs = {"source_ids": SOURCE[:1], "target_ids": target}
    expected = numpy(model(inputs)).astype("float32")[0]
    assert len(np.unique(expected[256:], axis=0)) > 22
    state = model.initial_state(SOURCE[:1], 300)
    step = compiled(model.step)
    for index in range(300):
        logits, state = step(target[:, index], state, np.array([index], "int32"))
        if index >= 250:
            found = numpy(logits).astype("float32")[0]
            np.testing.assert_allclose(found, expected[index], atol=0.06)


def test_the_encoder_is_that_of_the_whole():
    model = spread_weights(Transformer(11, norm_first=True, **SIZES))
    longer = np.pad(SOURCE, ((0, 0), (0, 3)))
    encoded, padded = numpy(model.encode(SOURCE)), numpy(model.encode(longer))
    np.testing.assert_allclose(padded[:, :5][SOURCE != 0], encoded[SOURCE != 0], atol=2e-5)
    assert encoded.shape == (2, 5, 12)


def test_attention_without_steps_is_told_where_decoding_begins():
    model = Transformer(11, self_attention=keras.layers.MultiHeadAttention(2, 3), **SIZES)
    assert tuple(model({"source_ids": SOURCE, "target_ids": SOURCE}).shape) == (2, 5, 11)
    refused("self_attention='MultiHeadAttention'", model.initial_state, SOURCE, 7)
