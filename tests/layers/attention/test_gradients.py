"""Gradients of every mechanism by central differences in float64: inputs and weights."""

from functools import partial

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.attention.compressive_memory_attention import CompressiveMemory
from keras_attn.layers.attention.recurrent_memory_attention import Memory
from tests.backends import thinned
from tests.layers.differentiation import (
    assert_gradients_are_slopes,
    in_float64,
    value_and_gradients,
)
from tests.layers.judges import spread_weights
from tests.layers.mechanisms import MECHANISMS

RNG = np.random.default_rng(5)
X, OTHER, FEW = (RNG.normal(size=(3, length, 6)) for length in (7, 7, 3))
REAL = np.arange(7)[None, :] < np.array([[4], [7], [0]])  # the last row has nothing
PADDED = {"query_mask": REAL, "value_mask": REAL}
CAUSAL = PADDED | {"use_causal_mask": True}
MEMORY = Memory(RNG.normal(size=(3, 4, 6)), np.arange(4) >= np.array([[0], [1], [4]]))
COMPRESSED = CompressiveMemory(*MEMORY, RNG.normal(size=(3, 2, 6)), np.eye(3, 2) > 0)
LABELS = layers.GlobalLocalPieces(
    *(RNG.integers(0, 9, (3, *pairs)) for pairs in ((7, 5), (7, 3), (3, 7), (3, 3)))
)
COMPRESSIONS = ("mean", "max", "convolution", "dilated_convolution", "most_used")


def built(make, *inputs):
    """A float64 layer of random numbers, hashes and fixed scores too, equal on every backend."""
    layer = make(dtype="float64")
    layer.build(*(x.shape for x in inputs))
    rng = np.random.default_rng(2)
    for weight in layer.weights:
        if "float" in weight.dtype:
            weight.assign(0.4 * rng.normal(size=weight.shape))
    return layer


def check(layer, inputs, *calls):
    """Holds the gradients of a sum over all outputs of all calls against slopes."""
    weights = layer.trainable_variables
    fixed = [weight.value for weight in layer.non_trainable_variables]

    def weighted_sum(tensors):
        of_weights, of_inputs = tensors[: len(weights)], tensors[len(weights) :]
        rng, total = np.random.default_rng(3), 0.0
        for options in calls:
            outputs, _ = layer.stateless_call(of_weights, fixed, *of_inputs, **options)
            if "memory" in options:  # which comes out without gradient
                outputs = outputs[0]
            for output in keras.tree.flatten(outputs):
                shares = keras.ops.convert_to_tensor(rng.normal(size=output.shape))
                total += keras.ops.sum(output * shares)
        return total

    arrays = [keras.ops.convert_to_numpy(weight) for weight in weights] + list(inputs)
    names = [weight.path for weight in weights] + ["query", "value", "key"][: len(inputs)]
    assert_gradients_are_slopes(weighted_sum, arrays, names)


@pytest.mark.parametrize(
    "name", thinned([name for name, one in MECHANISMS.items() if one.slopes], on_tensorflow=2)
)
def test_every_mechanism(name):
    """Its hashes and clipped numbers are steps, which a small change does not cross here."""
    mechanism = MECHANISMS[name]
    value = OTHER[:, :5] if mechanism.crosses else OTHER
    padded = {"query_mask": REAL, "value_mask": REAL[:, : value.shape[1]]}
    causal = [padded | {"use_causal_mask": True}] if mechanism.causal else []
    with in_float64():
        check(built(mechanism.make, X, value), (X, value), padded, *causal)


def test_grouped_queries_a_gate_a_window_and_keys_of_their_own():
    arguments = {"num_key_value_heads": 2, "use_gate": True, "sliding_window": 3}
    make = partial(layers.MultiHeadAttention, 4, 3, 5, **arguments)
    with in_float64():
        check(built(make, X, OTHER, OTHER), (X, OTHER, OTHER[:, ::-1] + X), PADDED, CAUSAL)


def test_a_window_with_linear_biases():
    make = partial(layers.LocalAttention, 2, 3, 3, relative_positions=layers.AlibiBias(2))
    with in_float64():
        check(built(make, X, OTHER), (X, OTHER), PADDED, CAUSAL)


@pytest.mark.parametrize("share_projections", [True, False])
def test_global_positions_of_their_own_with_labels(share_projections):
    arguments = {"max_distance": 1, "num_labels": 9, "share_projections": share_projections}
    make = partial(layers.GlobalLocalAttention, 2, 3, 2, **arguments)
    with in_float64():
        call = PADDED | {"global_query": FEW, "labels": LABELS}
        check(built(make, X, OTHER), (X, OTHER), call, PADDED | {"global_query": FEW})


def test_a_memory():
    with in_float64():
        layer = built(partial(layers.RecurrentMemoryAttention, 2, 3, 4), X, OTHER)
        memory = {"memory": MEMORY}
        check(layer, (X, OTHER), PADDED | memory, CAUSAL | memory)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_compressed_memory(compression):
    make = partial(layers.CompressiveMemoryAttention, 2, 3, 4, 2, 2, compression)
    with in_float64():
        check(built(make, X, OTHER), (X, OTHER), CAUSAL | {"memory": COMPRESSED})


@pytest.mark.parametrize("compression", ["convolution", "dilated_convolution"])
def test_the_loss_of_a_compression(compression):
    """Its weights have the slope for gradient; nothing else has any."""
    make = partial(layers.CompressiveMemoryAttention, 2, 3, 4, 2, 2, compression)
    with in_float64():
        layer = built(make, X, OTHER)
        weights = layer.trainable_variables
        learned = {weight.path for weight in layer.compress.trainable_variables}
        fixed = [weight.value for weight in layer.non_trainable_variables]
        options = CAUSAL | {"memory": COMPRESSED, "training": True, "return_losses": True}

        def loss(tensors):
            of_weights, of_inputs = tensors[: len(weights)], tensors[len(weights) :]
            *_, (lost,) = layer.stateless_call(of_weights, fixed, *of_inputs, **options)
            return lost

        arrays = [keras.ops.convert_to_numpy(weight) for weight in weights] + [X, OTHER]
        names = [weight.path for weight in weights] + ["query", "value"]
        found = value_and_gradients(loss)(arrays)[1]
        for name, gradient in zip(names, found, strict=True):
            assert keras.ops.any(gradient != 0) == (name in learned), name
        kept = [place for place, name in enumerate(names) if name in learned]

        def of_compression(tensors):
            whole = [keras.ops.convert_to_tensor(array) for array in arrays]
            for place, tensor in zip(kept, tensors, strict=True):
                whole[place] = tensor
            return loss(whole)

        assert_gradients_are_slopes(
            of_compression, [arrays[i] for i in kept], [names[i] for i in kept]
        )


def test_the_cell_that_attends_to_its_earlier_states():
    def make(**policy):
        cell = layers.IntraAttentionCell(3, 4, attention_units=5, **policy)
        return keras.layers.RNN(cell, return_sequences=True, **policy)

    with in_float64():
        check(built(make, X), (X,), {"mask": keras.ops.convert_to_tensor(REAL)})


def of_each_layer():
    """The first mechanism of each layer's class."""
    kinds = {type(mechanism.make()): name for name, mechanism in reversed(MECHANISMS.items())}
    return [name for name in MECHANISMS if name in kinds.values()]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", thinned(of_each_layer(), on_tensorflow=2))
def test_graphs_of_unknown_shapes(name):
    """As a training run makes them: gradients are those of known shapes."""
    import tensorflow as tf

    layer = MECHANISMS[name].make()
    layer.build((None, None, 6), (None, None, 6))
    spread_weights(layer)
    weights = [weight.value for weight in layer.trainable_variables]

    def gradients(x, real):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, x, query_mask=real, value_mask=real, training=True)
            loss = tf.reduce_sum(tf.square(keras.tree.flatten(outputs)[0]))
        return tape.gradient(loss, [x, *weights], unconnected_gradients="zero")

    shapes = [tf.TensorSpec((None, None, 6)), tf.TensorSpec((None, None), tf.bool)]
    unknown = tf.function(gradients, input_signature=shapes, autograph=False)
    for rows, length in ((3, 7), (2, 1)):
        given = tf.constant(X[:rows, :length], "float32"), tf.constant(REAL[:rows, :length])
        for found, expected in zip(unknown(*given), gradients(*given), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)
