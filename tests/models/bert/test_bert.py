"""BERT: segments, sizes, the pooler, saving. `transformers` judges it in tests/convert."""

import math

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import Bert
from tests.harness import assert_close, assert_same, assert_saved, numpy
from tests.layers.judges import spread_weights
from tests.models.families import SMALL, check_learns_of_sevens, check_padding
from tests.refusals import refusals, refused

TEXTS = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1], [0, 1, 1, 0, 0]], "int32")
INPUTS = {"token_ids": TEXTS, "segment_ids": SEGMENTS}


def built(**arguments):
    return spread_weights(Bert(11, **(SMALL | {"max_length": 13} | arguments)))


@pytest.mark.parametrize("attention", [None, layers.LinearAttention(2, 3)])
def test_padding_never_changes_a_real_token(attention):
    model = built(attention=attention)
    assert model.output_shape == (None, None, 12)
    check_padding(model, INPUTS)


def test_segments_and_positions_count():
    model = built()
    plain = numpy(model(INPUTS))
    changed = numpy(model(INPUTS | {"segment_ids": 1 - SEGMENTS}))
    assert (np.abs(changed - plain)[0].max(-1) > 1e-3).all()
    same = numpy(model({"token_ids": np.full((1, 5), 7, "int32")}))[0]
    assert np.abs(same[1:] - same[:-1]).max(-1).min() > 1e-3


@pytest.mark.parametrize("as_array", [np.asarray, lambda array: array.astype("int64"), list])
def test_without_segments_all_is_one_segment(as_array):
    model = built()
    expected = numpy(model({"token_ids": TEXTS, "segment_ids": np.zeros_like(TEXTS)}))
    token_ids = as_array(TEXTS) if as_array is not list else TEXTS.tolist()
    for inputs in ({"token_ids": token_ids}, {"token_ids": token_ids, "segment_ids": None}):
        assert_same(model(inputs), expected)


def test_within_another_model_without_segments(tmp_path):
    """A stranger's functional model, saved and loaded; the mask reaches what comes after."""
    encoder = built()
    inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
    model = keras.Model(inputs, layers.SequencePooling()(encoder(inputs)))
    found = model({"token_ids": TEXTS})
    assert_close(found[1], numpy(encoder({"token_ids": TEXTS[1:, :3]}))[0].mean(0), atol=2e-5)
    assert_saved(model, {"token_ids": TEXTS}, tmp_path)


def test_the_pooler_is_tanh_over_the_first_vector(tmp_path):
    model = built()
    vectors = model(INPUTS)
    kernel, bias = numpy(model.pooler.kernel), numpy(model.pooler.bias)
    assert_close(model.pooled(vectors), np.tanh(numpy(vectors)[:, 0] @ kernel + bias), atol=1e-5)
    loaded = assert_saved(model, INPUTS, tmp_path)
    assert_same(loaded.pooled(loaded(INPUTS)), model.pooled(vectors))
    other = built(pooler=False)
    assert len(other.weights) == len(model.weights) - 2
    refused("The model has no pooler. Received: pooler=None", other.pooled, vectors)


def test_gelu_is_the_exact_one():
    # x = 1: 0.5 (1 + erf(1 / sqrt(2))) = 0.84134; the approximation by tanh gives 0.84119.
    activation = built().blocks[0].feed_forward.activation
    expected = 0.5 * (1 + math.erf(1 / math.sqrt(2)))
    assert abs(float(activation(np.float32(1.0))) - expected) < 1e-6


@pytest.mark.slow
def test_it_learns_under_a_classifier_head():
    encoder = Bert(11, **(SMALL | {"num_layers": 1}), max_length=5, dropout=0.0, pooler=False)
    check_learns_of_sevens(encoder, epochs=12, dropout=0.0)


def test_arguments_reach_the_layers():
    model = built(epsilon=1e-3, attention=layers.RandomSynthesizer(2, 3, 7))
    assert (model.get_config()["max_length"], model.max_length) == (13, 7)
    assert (model.norm.epsilon, model.blocks[1].epsilon) == (1e-3, 1e-3)
    assert built().blocks[0].attention.dropout == 0.1
    assert built(attention_dropout=0.3).blocks[0].attention.dropout == 0.3


def test_an_attention_for_each_block(tmp_path):
    attention = [layers.LinearAttention(2, 3), layers.RandomSynthesizer(2, 3, 7)]
    model = built(attention=attention)
    assert [type(block.attention) for block in model.blocks] == [type(one) for one in attention]
    assert model.max_length == 7
    assert_saved(model, INPUTS, tmp_path)


def test_the_scale_of_the_embedding():
    """That of width 12, with the same weights."""
    model, scaled = built(), built(scale_embedding=True)
    embedding = model.embedding.embeddings
    embedding.assign(numpy(embedding) * np.float32(12**0.5))
    assert_close(scaled(INPUTS), model(INPUTS), atol=1e-5)


def test_the_activation_of_the_pooler():
    model = built(pooler_activation="relu")
    vectors = model(INPUTS)
    kernel, bias = numpy(model.pooler.kernel), numpy(model.pooler.bias)
    expected = np.maximum(numpy(vectors)[:, 0] @ kernel + bias, 0)
    assert_close(model.pooled(vectors), expected, atol=1e-5)


def test_from_preset():
    config = Bert.from_preset("bert_tiny", 11, num_layers=1).get_config()
    assert (config["hidden_dim"], config["num_layers"], config["num_heads"]) == (128, 1, 2)


test_mistakes_are_told = refusals(
    built,
    ({"num_heads": 5}, "Received: num_heads=5, hidden_dim=12"),
    ({"num_layers": 0}, "`num_layers` must be a positive integer. Received: num_layers=0"),
    ({"attention_dropout": 1.0}, "Received: attention_dropout=1.0"),
    ({"attention": [layers.LinearAttention(2, 3)]}, "one for each block.*blocks=2"),
)
