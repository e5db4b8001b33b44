"""TokenEmbedding: scale, tie with the output, mask."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import LearnedPositionEmbedding, SegmentEmbedding, TokenEmbedding
from keras_attn.validation import UserError
from tests.harness import numbers, numpy

IDS = np.array([[3, 0, 10], [0, 7, 3]], "int32")


def built(**arguments):
    layer = TokenEmbedding(11, 4, **arguments)
    layer.build()
    layer.embeddings.assign(np.arange(44).reshape(11, 4))
    return layer


def test_vectors_are_scaled_by_the_root_of_their_size():
    # Row 3 of the table is 12, 13, 14, 15; the square root of 4 is 2.
    np.testing.assert_array_equal(numpy(built()(IDS))[0, 0], [24, 26, 28, 30])
    np.testing.assert_array_equal(numpy(built(scale=False)(IDS))[0, 0], [12, 13, 14, 15])


def test_turned_round_it_projects_to_the_tokens_unscaled():
    vectors = numbers(1, 2, 3, 4)
    logits = numpy(built()(vectors, reverse=True))
    expected = np.einsum("bld,vd->blv", vectors, np.arange(44.0).reshape(11, 4))
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
    layer = built()
    by_hand = layer.logits(vectors[:, 0], layer.output_kernel())
    np.testing.assert_allclose(numpy(by_hand), expected[:, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_padding_has_no_share_where_it_is_not_predicted(dtype):
    vectors = numbers(1, 2, 3, 4)
    plain, without = (
        numpy(ops.cast(built(dtype=dtype, **given)(vectors, reverse=True), "float32"))
        for given in ({}, {"predict_zero": False})
    )
    np.testing.assert_array_equal(without[..., 1:], plain[..., 1:])
    shares = numpy(ops.softmax(without))
    assert np.isfinite(without).all()
    assert (shares[..., 0] == 0).all()


def test_looked_up_vectors_start_with_unit_variance():
    layer = TokenEmbedding(997, 64)
    vectors = numpy(layer(np.arange(997)[None]))
    assert np.std(vectors) == pytest.approx(1, abs=0.02)


def test_both_directions_train_one_table():
    ids = keras.Input((None,), dtype="int32")
    layer = TokenEmbedding(11, 4)
    model = keras.Model(ids, layer(layer(ids), reverse=True))
    assert len(model.trainable_variables) == 1
    assert model.count_params() == 44


def test_padding_is_masked():
    np.testing.assert_array_equal(numpy(built()(IDS)._keras_mask), IDS != 0)
    assert getattr(built(mask_zero=False)(IDS), "_keras_mask", None) is None


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_ids_of_any_number_type_as_those_of_keras(dtype, policy):
    ids = np.array([[1, 257, 0], [300, 0, 0]])
    if dtype in ("uint8", "bool"):
        ids = np.minimum(ids, 255 if dtype == "uint8" else 1)
    ours = TokenEmbedding(301, 4, scale=False, dtype=policy)
    theirs = keras.layers.Embedding(301, 4, mask_zero=True, dtype=policy)
    ours.build()
    theirs.build()
    theirs.set_weights(ours.get_weights())
    inputs = keras.Input((None,))  # float32, unless told otherwise
    found, expected = ours(ids.astype(dtype)), theirs(ids.astype(dtype))
    np.testing.assert_array_equal(numpy(found), numpy(expected))
    np.testing.assert_array_equal(numpy(found._keras_mask), ids != 0)
    model = keras.Model(inputs, [ours(inputs), ours(inputs)._keras_mask])
    vectors, mask = model.predict_on_batch(ids.astype("float32"))
    np.testing.assert_array_equal(mask, ids != 0)
    np.testing.assert_array_equal(vectors, numpy(theirs(ids)))
    loaded = keras.Model.from_config(model.get_config())
    np.testing.assert_array_equal(loaded.predict_on_batch(ids.astype("float32"))[1], mask)


def test_segments_and_positions_of_float_ids():
    ids, x = np.array([[0, 1, 2], [2, 0, 0]]), numbers(1, 2, 3, 4)
    layer = SegmentEmbedding(3)
    expected = layer(x, ids)
    np.testing.assert_array_equal(numpy(layer(x, ids.astype("float32"))), numpy(expected))
    symbolic = keras.Input((3, 4)), keras.Input((3,))
    found = keras.Model(symbolic, layer(*symbolic)).predict_on_batch([x, ids])
    np.testing.assert_allclose(found, numpy(expected), atol=1e-6)
    positions = LearnedPositionEmbedding(7)
    expected = numpy(positions(x, start_index=2))
    np.testing.assert_array_equal(numpy(positions(x, start_index=2.0)), expected)


@pytest.mark.parametrize("mask_zero", [True, False])
def test_logits_carry_no_mask_and_no_warning(mask_zero):
    masked = keras.layers.Embedding(11, 4, mask_zero=True)(IDS)
    logits = built(mask_zero=mask_zero)(masked, reverse=True)
    assert getattr(logits, "_keras_mask", None) is None


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_keeps_the_table_in_float32(dtype):
    layer = built(dtype=dtype)
    assert layer.embeddings.dtype == "float32"
    for output in (layer(IDS), layer(numbers(1, 2, 4), reverse=True)):
        assert keras.backend.standardize_dtype(output.dtype) == dtype.removeprefix("mixed_")


@pytest.mark.parametrize("name", ["vocabulary_size", "hidden_dim"])
def test_mistakes(name):
    with pytest.raises(
        UserError, match=f"`{name}` must be a positive integer. Received: {name}=0."
    ):
        TokenEmbedding(**({"vocabulary_size": 11, "hidden_dim": 4} | {name: 0}))
