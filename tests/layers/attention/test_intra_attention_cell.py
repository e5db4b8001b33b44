"""IntraAttentionCell: the paper's equations by loops, in Keras' RNN layer, saved and masked."""

import keras
import numpy as np
import pytest

from keras_attn.layers import IntraAttentionCell
from tests.harness import assert_saved, constructor_arguments, numbers, numpy
from tests.layers.differentiation import value_and_gradients
from tests.layers.judges import spread_weights
from tests.models.naive_recurrent import array, sigmoid
from tests.refusals import refused

X = numbers(1, 2, 7, 5)


def naive(cell, x):
    """Equations 4 to 8 of the paper, one sequence, one step after the other, in float64."""
    parts = ("input_projection", "read_attention", "state_attention", "recurrent_gates")
    w_x, w_read, w_state, u = (array(getattr(cell, part).kernel) for part in parts)
    attention = w_x.shape[1] - 4 * cell.units
    v, bias = array(cell.scale)[:, 0], array(cell.bias)
    outputs, hidden, cells, read = [], [], [], np.zeros(cell.units)
    for step in np.asarray(x, "float64"):
        kept = slice(max(len(hidden) - cell.max_length, 0), None)
        states, memories = hidden[kept], cells[kept]
        scores = [
            v @ np.tanh(h @ w_state + step @ w_x[:, :attention] + read @ w_read) for h in states
        ]
        weights = np.exp(scores) / np.sum(np.exp(scores))
        read, memory = np.zeros(cell.units), np.zeros(cell.units)
        for weight, h, c in zip(weights, states, memories, strict=True):
            read, memory = read + weight * h, memory + weight * c
        gates = step @ w_x[:, attention:] + read @ u + bias
        enter, forget, candidate, leave = np.split(gates, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(candidate)
        hidden.append(sigmoid(leave) * np.tanh(memory))
        cells.append(memory)
        outputs.append(hidden[-1])
    return np.stack(outputs)


def built(max_length=7, **arguments):
    layer = keras.layers.RNN(IntraAttentionCell(3, max_length, **arguments), return_sequences=True)
    layer(X)
    return spread_weights(layer)


@pytest.mark.parametrize("max_length", [7, 3])
@pytest.mark.parametrize("arguments", [{}, {"attention_units": 4}])
def test_the_papers_equations(max_length, arguments):
    layer = built(max_length, **arguments)
    found = numpy(layer(X))
    for row in range(2):
        np.testing.assert_allclose(found[row], naive(layer.cell, X[row]), atol=2e-6)


def test_padding_changes_nothing():
    layer = built()
    mask = np.arange(7)[None, :] < np.array([[4], [7]])
    found = numpy(layer(X, mask=mask))
    np.testing.assert_allclose(found[:1, :4], numpy(layer(X[:1, :4])), atol=2e-6)


def test_nothing_hidden_has_a_gradient():
    """Neither padding nor the steps after those that are looked at: exactly."""
    layer = built()
    mask = np.arange(7)[None, :] < np.array([[4], [7]])

    def of_the_seen(tensors):
        outputs = layer(tensors[0], mask=mask)
        return keras.ops.sum(outputs[0, :4]) + keras.ops.sum(outputs[1, :5])

    gradient = numpy(value_and_gradients(of_the_seen)([X])[1][0])
    assert not gradient[0, 4:].any()
    assert not gradient[1, 5:].any()
    assert gradient[0, :4].any(axis=-1).all()
    assert gradient[1, :5].any(axis=-1).all()


def test_the_forget_gate_starts_open():
    bias = numpy(built_fresh().bias)
    assert bias.tolist() == [0] * 3 + [1] * 3 + [0] * 6
    assert not numpy(built_fresh(unit_forget_bias=False).bias).any()


def built_fresh(**arguments):
    cell = IntraAttentionCell(3, 7, **arguments)
    cell.build((None, 5))
    return cell


def test_every_weight_learns():
    layer = keras.layers.RNN(IntraAttentionCell(3, 7))
    model = keras.Sequential([keras.Input((None, 5)), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = [numpy(weight) for weight in model.trainable_weights]
    model.fit(X, np.ones((2, 1)), verbose=0)
    assert all(
        np.any(numpy(weight) != old)
        for weight, old in zip(model.trainable_weights, before, strict=True)
    )


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(dtype):
    layer = built()
    cell = IntraAttentionCell(3, 7, dtype=dtype)
    half = keras.layers.RNN(cell, return_sequences=True, dtype=dtype)
    half(X)
    half.set_weights(layer.get_weights())
    np.testing.assert_allclose(numpy(half(X)).astype("float32"), numpy(layer(X)), atol=0.05)


def test_every_argument_is_saved_and_loaded(tmp_path):
    arguments = {
        "attention_units": 4,
        "kernel_initializer": "he_normal",
        "recurrent_initializer": "he_uniform",
        "unit_forget_bias": False,
    }
    assert set(constructor_arguments(IntraAttentionCell)) == {"units", "max_length", *arguments}
    model = keras.Sequential([keras.Input((None, 5)), built(**arguments)])
    loaded = assert_saved(model, X, tmp_path)
    assert loaded.layers[0].cell.get_config() == model.layers[0].cell.get_config()


def test_mistakes_are_told():
    refused("`max_length` .* Received: max_length=0", IntraAttentionCell, 3, 0)
