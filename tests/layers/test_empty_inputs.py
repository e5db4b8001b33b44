"""Batches of nothing, as some replicas get at an epoch's end, and sequences without a position."""

import numpy as np
import pytest
from keras import ops

from keras_attn.layers import SequencePooling, SinusoidalPositionEncoding
from keras_attn.models import TransformerEncoder
from tests.backends import thinned
from tests.harness import numpy
from tests.layers.mechanisms import MECHANISMS

SHAPE = (0, 5, 6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_nothing_gives_nothing(name):
    layer = MECHANISMS[name].make()
    x = np.zeros(SHAPE, "float32")
    assert numpy(layer(x, x)).shape == SHAPE
    mask = np.ones(SHAPE[:2], bool)
    assert numpy(layer(x, x, query_mask=mask, value_mask=mask)).shape == SHAPE


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", thinned(list(MECHANISMS), on_tensorflow=4))
def test_nothing_gives_nothing_in_a_graph_of_unknown_sizes(name):
    import tensorflow as tf

    layer = MECHANISMS[name].make()
    layer(np.zeros((1, 5, 6), "float32"), np.zeros((1, 5, 6), "float32"))

    @tf.function(input_signature=[tf.TensorSpec((None, None, 6))], autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, x)
        return output, tape.gradient(output, x)

    for found in gradient(tf.zeros(SHAPE)):
        assert found.shape == SHAPE


@pytest.mark.parametrize("name", MECHANISMS)
def test_sequences_without_a_position(name):
    """Nothing comes of nothing; a query with nothing to attend to has a context of 0."""
    mechanism, x = MECHANISMS[name], np.zeros((2, 0, 6), "float32")
    layer = mechanism.make()
    layer.build((2, 5, 6))
    nothing = ops.ones((2, 0), "bool")
    assert numpy(layer(x, x)).shape == x.shape
    assert numpy(layer(x, x, query_mask=nothing, value_mask=nothing)).shape == x.shape
    if mechanism.causal:
        assert numpy(layer(x, x, use_causal_mask=True)).shape == x.shape
    if mechanism.steps:
        cache = layer.initial_cache(2, 5)
        one = ops.ones((2, 1, 6))
        output, cache = layer.attend_prompt(ops.convert_to_tensor(x), cache, nothing)
        assert numpy(output).shape == x.shape
        found, _ = layer.attend_step(one, cache, 0)
        expected, _ = layer.attend_step(one, layer.initial_cache(2, 5), 0)
        np.testing.assert_allclose(numpy(found), numpy(expected), atol=1e-6)
    if mechanism.crosses:
        layer = mechanism.make()
        layer.build((2, 3, 6), (2, 5, 6))
        found = numpy(layer(np.ones((2, 3, 6), "float32"), x))
        np.testing.assert_array_equal(found, np.zeros((2, 3, 6)))  # biases are 0


@pytest.mark.parametrize("pooling", ["mean", "max", "mean_max", "first"])
def test_pooling_of_nothing(pooling):
    found = numpy(SequencePooling(pooling)(np.zeros((2, 0, 6), "float32")))
    np.testing.assert_array_equal(found, np.zeros((2, 12 if pooling == "mean_max" else 6)))


def test_an_encoder_of_nothing():
    model = TransformerEncoder(20, num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
    assert numpy(model({"token_ids": np.zeros((1, 0), "int32")})).shape == (1, 0, 8)


@pytest.mark.tensorflow
def test_ragged_ids_are_padded():
    import tensorflow as tf

    model = TransformerEncoder(20, num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
    found = numpy(model({"token_ids": tf.ragged.constant([[1, 2], [3]])}))
    expected = numpy(model({"token_ids": np.array([[1, 2], [3, 0]], "int32")}))
    np.testing.assert_array_equal(found, expected)


def test_positions_of_images_are_refused():
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=4"):
        SinusoidalPositionEncoding()(np.zeros((1, 2, 3, 4), "float32"))
