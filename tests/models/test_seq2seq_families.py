"""What every recurrent and convolutional encoder-decoder does, as the Transformer does."""

import inspect
import json
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search
from keras_attn.layers import LuongAttention
from keras_attn.models import (
    GNMT,
    PRESETS,
    ConvSeq2Seq,
    Marian,
    RecurrentSeq2Seq,
    Transformer,
    model_class,
)
from tests.backends import named, quick
from tests.generation.comparison import as_numpy, assert_same_hypotheses, listed
from tests.generation.naive_search import enumerate_all
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import CASES, INPUTS, SOURCE, TARGET, descended, logits, made
from tests.refusals import message_of, refused

START, END = 1, 2
BLOCKS = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
ON_JAX = ("additive GRU", "Luong", "GNMT", "synthesizers", "convolutions", "T5")
SOME = named(CASES, ON_JAX, others=2)


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", SOME)
def test_steps_equal_the_whole(name):
    model, beams = made(name), 3
    state = model.initial_state(SOURCE, 9, beams)
    # What belongs to a source is held once; only kernels have no row for each.
    held = state["source"].get("projected", state["source"].get("attended"))
    assert {part.shape[0] for part in keras.tree.flatten(held)} <= {2}
    history, found = descended(quick(model.step), state, beams, ops.convert_to_tensor)
    expected = logits(model, np.repeat(SOURCE, beams, axis=0), history)
    np.testing.assert_allclose(found, expected, atol=3e-5)


@pytest.mark.parametrize("name", SOME)
def test_padding_never_changes_a_real_token(name):
    model = made(name)
    alone = logits(model, SOURCE[1:, :3], TARGET[1:, :3])
    padded = [np.pad(ids, ((0, 0), (0, 4))) for ids in (SOURCE, TARGET)]
    np.testing.assert_allclose(logits(model, *padded)[1, :3], alone[0], atol=2e-5)


def test_a_source_of_padding_alone_is_finite():
    for name in ("additive LSTM", "Luong", "GNMT", "convolutions"):
        assert np.isfinite(logits(made(name), 0 * SOURCE, TARGET)).all()


@pytest.mark.parametrize("name", SOME)
def test_a_target_sees_what_came_before_in_its_order_and_nothing_that_follows(name):
    """Order counts although, in recurrent models, nothing encodes positions."""
    later, swapped = TARGET[0].copy(), TARGET[0].copy()
    later[4:] = 10
    swapped[[2, 3]] = TARGET[0, [3, 2]]
    source = np.repeat(SOURCE[:1], 3, axis=0)
    usual, later, swapped = logits(made(name), source, np.stack([TARGET[0], later, swapped]))
    np.testing.assert_allclose(usual[:4], later[:4], atol=1e-6)
    assert np.abs(usual[4:] - later[4:]).max() > 1e-3
    assert np.abs(usual[4] - swapped[4]).max() > 1e-3


@pytest.mark.parametrize(
    "name", ["additive GRU", "Luong", "fixed context", "GNMT", "convolutions", "T5"]
)
def test_a_wide_beam_finds_what_trying_everything_finds(name):
    model, longest, beams = made(name), 4, 8
    following = _every_prefix(model, longest)
    vocabulary = model.output_shape[-1]
    forbidden = (0, START, *range(5, vocabulary))

    def search(source_ids):
        state = model.initial_state(source_ids, longest, beams)
        options = {"n_best": 5, "forbidden_ids": forbidden}
        return beam_search(model.step, state, beams, START, END, longest, **options)

    found = as_numpy(quick(search)(ops.convert_to_tensor(SOURCE)))
    for row in range(2):
        after = following[row].__getitem__
        expected = enumerate_all(after, vocabulary, END, longest, 0.6, forbidden=forbidden)
        assert_same_hypotheses(listed(found, row), expected[:5])


def _every_prefix(model, longest):
    """For each source the log-probabilities after every prefix of the tokens 3 and 4."""
    bodies = np.stack(np.meshgrid(*[[3, 4]] * (longest - 1), indexing="ij"), -1).reshape(-1, 3)
    targets = np.concatenate([np.full((len(bodies), 1), START), bodies], axis=1).astype("int32")
    result = []
    for row in range(2):
        sources = np.repeat(SOURCE[row : row + 1], len(bodies), axis=0)
        values = logits(model, sources, targets).astype("float64")
        values -= np.log(np.exp(values).sum(axis=-1, keepdims=True))
        result.append(
            {
                tuple(int(token) for token in body[:length]): values[i, length]
                for i, body in enumerate(bodies)
                for length in range(longest)
            }
        )
    return result


def test_greedy_search_follows_the_most_probable_token():
    for name in ("Luong", "convolutions"):
        model = made(name)
        state = model.initial_state(SOURCE, 6)
        found = greedy_search(model.step, state, START, END, 6)
        tokens = numpy(found.token_ids)[:, 0]
        length = int(numpy(found.lengths)[0, 0])
        target = np.concatenate([[[START]], tokens[:1, : length - 1]], axis=1).astype("int32")
        choice = logits(model, SOURCE[:1], target)[0].argmax(axis=-1)
        np.testing.assert_array_equal(choice[: min(length, 5)], tokens[0, : min(length, 5)])


@pytest.mark.parametrize("name", CASES)
def test_config_holds_every_argument(name):
    model = CASES[name]()
    config = model.get_config()
    assert set(config) == set(inspect.signature(type(model).__init__).parameters) - {"self"}
    json.dumps(config)
    assert type(model).from_config(config).get_config() == config


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("additive GRU", "GNMT", "convolutions") else slow(name)
        for name in CASES
        if name not in ("wide convolutions", "GNMT, one layer")
    ],
)
@pytest.mark.slow
def test_training_moves_every_weight(name):
    model = spread_weights(CASES[name]())
    before = [numpy(weight) for weight in model.trainable_variables]
    labels = np.concatenate([TARGET[:, 1:], [[2], [0]]], axis=1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.SGD(1.0), loss)
    history = model.fit(INPUTS, labels, batch_size=2, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    for weight, old in zip(model.trainable_variables, before, strict=True):
        assert np.isfinite(numpy(weight)).all()
        assert not np.array_equal(numpy(weight), old), weight.path


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_precision_reaches_every_layer(dtype):
    half = dtype.removeprefix("mixed_")
    models = [
        ConvSeq2Seq(11, num_layers=1, hidden_dim=6, dtype=dtype),
        Transformer(11, **BLOCKS, norm_first=True, dtype=dtype),
    ]
    if dtype != "float16":  # in which JAX and torch draw no orthogonal kernels
        models += [
            RecurrentSeq2Seq(11, hidden_dim=6, dtype=dtype),
            RecurrentSeq2Seq(11, hidden_dim=6, attention="luong", dtype=dtype),
            GNMT(11, num_layers=3, hidden_dim=6, dtype=dtype),
        ]
    for model in models:
        layers = [
            layer
            for layer in model._flatten_layers()
            if isinstance(layer, keras.Layer) and not isinstance(layer, keras.layers.InputLayer)
        ]
        assert {layer.compute_dtype for layer in layers if layer.weights} == {half}
        found = quick(lambda inputs, model=model: model(inputs))(INPUTS)
        assert keras.backend.standardize_dtype(found.dtype) == half
        assert np.isfinite(numpy(found).astype("float32")).all()
        model.compile("sgd", "mse")
        scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        assert scaled == (dtype == "mixed_float16")


@pytest.mark.tensorflow  # the numbers are those of any backend
@pytest.mark.parametrize(
    "name", ["lstm_2x64", "lstm_2x512", "gru_2x64_fixed", "gnmt_small", "conv_s2s"]
)
def test_presets_of_letters_to_phonemes(name):
    assert PRESETS[name].recipe()["tokenizers"]["target"] == {"kind": "symbols"}
    overrides = {"hidden_dim": 8, "dropout": 0.0}
    model = model_class(name).from_preset(name, 11, target_vocabulary_size=13, **overrides)
    assert type(model).__name__ == PRESETS[name].family
    assert model.output_shape == (None, None, 13)
    assert model.get_config()["num_layers"] == PRESETS[name].config["num_layers"]


def test_mistakes_are_told_in_one_line():
    marian, recurrent, convolutional = (
        partial(family, 11, hidden_dim=6) for family in (Marian, RecurrentSeq2Seq, ConvSeq2Seq)
    )
    assert message_of(marian, num_heads=2, decoder_heads=4) == (
        "The number of heads must divide `hidden_dim`. Received: num_heads=4, hidden_dim=6."
    )
    assert message_of(recurrent, hidden_dim=7) == (
        "A bidirectional encoder needs an even `hidden_dim`. Received: hidden_dim=7."
    )
    assert message_of(recurrent, cell="lstn") == (
        "`cell` must be one of 'lstm', 'gru'. Did you mean 'lstm'? Received: cell='lstn'."
    )
    assert message_of(recurrent, attention="bahdanau") == (
        "`attention` must be one of 'additive', 'luong'. Received: attention='bahdanau'."
    )
    assert message_of(recurrent, cell="gru", intra_attention=3) == (
        "`intra_attention` needs the cell lstm. Received: intra_attention=3, cell='gru'."
    )
    assert message_of(recurrent, attention=None, input_feeding=True) == (
        "Without attention there is nothing to feed. Received: attention=None, input_feeding=True."
    )
    assert message_of(recurrent, attention=LuongAttention("general", dropout=0.1)) == (
        "A recurrent decoder's attention has no dropout. Received: "
        "attention='LuongAttention', dropout=0.1."
    )
    assert message_of(recurrent, attention=keras.layers.Attention()) == (
        "`attention` must be an attention layer, called with query, value, attention_mask. "
        "Received: attention='Attention'."
    )
    assert message_of(convolutional, kernel_size=4) == (
        "A convolution that sees both sides needs an odd `kernel_size`. Received: kernel_size=4."
    )
    assert message_of(GNMT, 11, num_layers=0) == (
        "`num_layers` must be a positive integer. Received: num_layers=0."
    )


def test_a_token_for_each_hypothesis():
    for model in (made("Luong"), made("convolutions"), Transformer(11, **BLOCKS)):
        state = model.initial_state(SOURCE, 5, beams=3)
        tokens = ops.convert_to_tensor([4, 5])
        refused("Received: tokens=2, sources=2, beams=3", model.step, tokens, state, 0)


def test_one_vocabulary_has_one_table():
    model = RecurrentSeq2Seq(11, hidden_dim=6)
    assert model.source_embedding is model.target_embedding is model.output_embedding
    untied = spread_weights(GNMT(11, num_layers=1, hidden_dim=6))
    assert untied.output_embedding is not untied.target_embedding is untied.source_embedding
