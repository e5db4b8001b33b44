"""One map fills a model from tensors and makes the same tensors of it."""

import keras
import numpy as np
import pytest

from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.layers.dense import Dense
from keras_attn.layers.layer_normalization import LayerNormalization
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow


class Arrays:
    """Tensors in memory."""

    path = "checkpoint"

    def __init__(self, **shapes):
        rng = np.random.default_rng(0)
        self.arrays = {
            name.replace("__", "."): rng.normal(size=shape).astype("float32")
            for name, shape in shapes.items()
        }
        self.shapes = {name: array.shape for name, array in self.arrays.items()}

    def read(self, name, start=0, stop=None):
        return self.arrays[name][start:stop].copy()


def made(layer, *shape):
    layer.build(shape)
    return layer


def dense():
    return made(Dense(6), None, 5)


def table(rows=7):
    return keras.Variable(np.ones((rows, 3), "float32"))


def linear_of_three(weights):
    layer = dense()
    weights.copy_linear(layer, "a", "b", "c", scales=(2.0, 1.0, 0.3))
    return layer.weights


def rows_and_zeros(weights):
    one, bias = table(), keras.Variable(np.ones(7, "float32"))
    rows = [-1, 5, 0, 1, 2, 3, 4]
    weights.copy_rows(one, "e", rows, scale=0.7)
    weights.copy_rows(bias, "f", rows, flat=True)
    return [one, bias]


def gru(weights):
    cell = made(keras.layers.GRUCell(4, reset_after=True), None, 5)
    weights.copy_gru(cell, ("w_i", "w_h"), ("b_i", "b_h"))
    return cell.weights


def others(weights):
    norm, kernels = (
        made(LayerNormalization(epsilon=0.1), None, 5),
        keras.Variable(np.ones((3, 4), "float32")),
    )
    layer = dense()
    weights.copy_norm(norm, "norm")
    weights.copy_depthwise(kernels, "conv")
    weights.copy_conv1d(layer, "one")
    weights.copy_embedding(first := table(), "table")
    return [*norm.weights, kernels, *layer.weights, first]


LINEAR = {
    f"{name}__{kind}": (2, 5)[: 2 - (kind == "bias")]
    for name in "abc"
    for kind in ("weight", "bias")
}
CASES = {
    "linear": (linear_of_three, LINEAR),
    "rows": (rows_and_zeros, {"e": (6, 3), "f": (1, 6)}),
    "gru": (gru, {"w_i": (12, 5), "w_h": (12, 4), "b_i": (12,), "b_h": (12,)}),
    "others": (
        others,
        {
            "norm__weight": (5,),
            "norm__bias": (5,),
            "conv": (4, 1, 3, 1),
            "one__weight": (5, 6),
            "one__bias": (6,),
            "table": (6, 3),
        },
    ),
}


class Holder:
    def __init__(self, weights):
        self.weights = weights


@pytest.mark.parametrize("name", CASES)
def test_tensors_come_out_as_they_went_in(name):
    make, shapes = CASES[name]
    weights, tensors = WeightMap(), Arrays(**shapes)
    model = Holder(make(weights))
    before = [np.array(weight) for weight in model.weights]
    weights.fill(model, tensors)
    changed = [
        not np.array_equal(weight, old) for weight, old in zip(model.weights, before, strict=True)
    ]
    assert all(changed)
    weights.require_whole(model)
    found = dict(weights.tensors())
    assert {name: array.shape for name, array in found.items()} == tensors.shapes
    assert weights.shapes == tensors.shapes
    for key, array in found.items():
        np.testing.assert_allclose(array, tensors.arrays[key], rtol=1e-6)
        assert array.flags.c_contiguous


def test_a_gru_of_pytorch_has_reset_before_update():
    """Keras' gates are update, reset and candidate."""
    weights, (_, shapes) = WeightMap(), CASES["gru"]
    tensors = Arrays(**shapes)
    model = Holder(gru(weights))
    weights.fill(model, tensors)
    kernel = np.array(model.weights[0])
    np.testing.assert_array_equal(kernel[:, :4], tensors.arrays["w_i"][4:8].T)
    np.testing.assert_array_equal(kernel[:, 4:8], tensors.arrays["w_i"][:4].T)


def test_a_kept_weight_leaves_only_if_it_is_still_zero():
    weights, layer = WeightMap(), dense()
    weights.copy_linear(layer, "a", bias=False)
    model = Holder(layer.weights)
    weights.require_whole(model)
    layer.bias.assign(np.ones(6))
    refused_in_one_line("its own weights and no others.*bias", weights.require_whole, model)
