"""LearnedPositionEmbedding: which vector goes where, and what is too long."""

import keras
import numpy as np

from keras_attn.layers import LearnedPositionEmbedding
from tests.harness import numpy
from tests.refusals import refused


def built(max_length=13, **arguments):
    layer = LearnedPositionEmbedding(max_length, **arguments)
    layer.build((None, None, 3))
    layer.embeddings.assign(np.arange(max_length * 3).reshape(max_length, 3))
    return layer


def test_each_position_has_its_vector():
    inputs = np.full((2, 5, 3), 0.5, "float32")
    expected = np.arange(15.0).reshape(5, 3) + 0.5
    np.testing.assert_array_equal(numpy(built()(inputs)), np.stack([expected] * 2))


def test_starts_anywhere():
    inputs = np.zeros((2, 2, 3), "float32")
    table = np.arange(39.0).reshape(13, 3)
    np.testing.assert_array_equal(numpy(built()(inputs, start_index=11))[0], table[11:13])
    rows = numpy(built()(inputs, start_index=np.array([1, 7])))
    np.testing.assert_array_equal(rows, np.stack([table[1:3], table[7:9]]))


def test_only_the_used_vectors_learn():
    layer = LearnedPositionEmbedding(13)
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, layer(inputs))
    before = numpy(layer.embeddings)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.fit(np.zeros((2, 5, 3)), np.ones((2, 5, 3)), verbose=0)
    moved = np.abs(numpy(layer.embeddings) - before).sum(1) > 0
    np.testing.assert_array_equal(moved, np.arange(13) < 5)


def test_masks_go_on():
    embedded = keras.layers.Embedding(11, 3, mask_zero=True)(np.array([[3, 0]]))
    np.testing.assert_array_equal(numpy(built()(embedded)._keras_mask), [[True, False]])


def test_mistakes():
    refused("`max_length` must be a positive .* max_length=0.", LearnedPositionEmbedding, 0)
    message = "not be longer than `max_length`. Received: length=5, max_length=4."
    refused(message, built(4), np.zeros((1, 5, 3)))
