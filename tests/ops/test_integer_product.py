import numpy as np
import pytest

from keras_attn.layers.attention.head_projection import HeadProjection
from keras_attn.layers.dense import Dense
from keras_attn.ops.integer_product import (
    are_sums_exact,
    integer_product,
    require_exact_sums,
    weights_as_constants,
)
from tests.harness import assert_close, numpy

pytestmark = pytest.mark.tensorflow


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 64), (1, 1, 33), (0, 4)])
@pytest.mark.parametrize("units", [1, 19])
def test_sums_of_integers_are_exact(shape, units, compiled, exact_integers):
    import tensorflow as tf

    # Rows of very different sizes, and one of zeros.
    inputs = numbers(1, *shape) * 10.0 ** np.arange(-3, shape[-2] - 3)[:, None].astype("float32")
    inputs[..., -1:, :] = 0
    kernel = np.random.default_rng(2).integers(-127, 128, (shape[-1], units)).astype("int8")
    scale = np.random.default_rng(3).uniform(1, 200, units)

    def run(inputs):
        return integer_product(inputs, kernel, scale)

    if compiled:
        run = tf.function(run, input_signature=[tf.TensorSpec([None] * len(shape))])
    largest = np.abs(inputs).max(-1, keepdims=True, initial=1e-30)
    rounded = np.round(inputs * (np.float32(127) / largest)).astype("int64")
    expected = rounded @ kernel.astype("int64") * largest.astype("float64") / 127 / scale
    found = numpy(run(tf.constant(inputs)))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


def quantized(layer):
    layer.build((None, None, 64))
    for seed, weight in enumerate(layer.weights):
        weight.assign(numbers(seed, *weight.shape) / 8)
    layer.quantize("int8")
    return layer


LAYERS = {
    "dense": (lambda: Dense(24, activation="relu"), {}),
    "without a bias": (lambda: Dense(24, use_bias=False), {}),
    "heads": (lambda: HeadProjection({"query": (2, 8), "key": (2, 8), "value": (2, 4)}), {}),
    "heads of some roles": (
        lambda: HeadProjection({"query": (2, 8), "key": (2, 8), "value": (2, 4)}),
        {"roles": ("value", "query")},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_compute_as_keras_quantizes_them(name, exact_integers):
    make, options = LAYERS[name]
    layer, inputs = quantized(make()), numbers(9, 2, 5, 64)
    expected = layer(inputs, **options)
    with weights_as_constants():
        found = layer(inputs, **options)
    assert_close(found, expected, atol=1e-5)


def test_a_graph_fails_where_sums_are_not_exact():
    import tensorflow as tf

    @tf.function
    def run():
        with tf.control_dependencies([require_exact_sums()]):
            return tf.constant(1)

    if are_sums_exact():
        assert run() == 1
    else:
        with pytest.raises(tf.errors.OpError, match="VNNI"):
            run()
