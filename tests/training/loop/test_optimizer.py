"""The optimizers against Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.training import TrainingSettings, make_optimizer

SHAPES = {"tall": (5, 3), "wide": (3, 8), "embeddings": (4, 3), "vector": (7,), "scalar": ()}


def trajectory(make, dtype, steps=7):
    """The variables' values after some steps of the gradients of one and the same seed."""
    rng = np.random.default_rng(3)
    variables = [
        keras.Variable(rng.normal(size=shape).astype(dtype), dtype=dtype, name=name)
        for name, shape in SHAPES.items()
    ]
    optimizer = make(variables)
    for step in range(steps):
        scale = 10.0 ** (step - 3)  # gradients of many sizes, so that epsilon counts too
        gradients = [
            tf.constant(scale * rng.normal(size=shape), dtype) for shape in SHAPES.values()
        ]
        optimizer.apply(gradients, variables)
    return [variable.numpy() for variable in variables]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_fused_update_is_that_of_keras(dtype, weight_decay):
    settings = TrainingSettings(weight_decay=weight_decay, beta_1=0.8, beta_2=0.95, epsilon=1e-3)
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 7, 0.01)

    def keras_own(variables):
        arguments = {"learning_rate": schedule, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}
        if not weight_decay:
            return keras.optimizers.Adam(**arguments)
        optimizer = keras.optimizers.AdamW(weight_decay=weight_decay, **arguments)
        optimizer.exclude_from_weight_decay(var_list=variables[3:])
        return optimizer

    expected = trajectory(keras_own, dtype)
    found = trajectory(lambda v: make_optimizer(settings, schedule, v, False), dtype)
    start = trajectory(keras_own, dtype, steps=0)
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for one, other, before in zip(found, expected, start, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        assert np.max(np.abs(one - before)) > 0.001


def test_muon_is_that_of_keras():
    settings = TrainingSettings(optimizer="muon", beta_1=0.8, beta_2=0.95, epsilon=1e-3)

    def keras_own(variables):
        return keras.optimizers.Muon(
            learning_rate=0.1,
            adam_beta_1=0.8,
            adam_beta_2=0.95,
            epsilon=1e-3,
            weight_decay=None,
            adam_weight_decay=None,
        )

    expected = trajectory(keras_own, "float32")
    found = trajectory(lambda v: make_optimizer(settings, 0.1, v, False), "float32")
    start = trajectory(keras_own, "float32", steps=0)
    for one, other, before in zip(found, expected, start, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
        assert np.max(np.abs(one - before)) > 0.001


@pytest.mark.parametrize("precision", ["float32", "float64", "mixed_bfloat16"])
def test_muon_moves_matrices_by_an_orthogonal_matrix(precision):
    """However small the gradient: singular values near 1, times 0.2 √(larger side) (Liu et al.)."""
    settings = TrainingSettings(optimizer="muon", precision=precision)
    dtype = "float64" if precision == "float64" else "float32"
    variable = keras.Variable(np.zeros((40, 100)), dtype=dtype)
    optimizer = make_optimizer(settings, 0.1, [variable], False)
    gradient = 1e-3 * np.random.default_rng(0).normal(size=(40, 100))
    optimizer.apply([tf.constant(gradient, dtype)], [variable])
    moved = -variable.numpy() / (0.1 * 0.2 * 10)
    values = np.linalg.svd(moved, compute_uv=False)
    assert values.min() > 0.65
    assert values.max() < 1.25
    left, _, right = np.linalg.svd(gradient, full_matrices=False)
    along = np.diag(left.T @ moved @ right.T)
    np.testing.assert_allclose(np.sort(along), np.sort(values), atol=0.05)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_weight_decay_by_hand(optimizer):
    settings = TrainingSettings(optimizer=optimizer, weight_decay=0.5)
    matrix = keras.Variable(np.full((2, 2), 3.0, "float32"))
    vector = keras.Variable(np.full(2, 3.0, "float32"))
    made = make_optimizer(settings, 0.1, [matrix, vector], False)
    made.apply([tf.zeros((2, 2)), tf.zeros(2)], [matrix, vector])
    np.testing.assert_allclose(matrix.numpy(), 3 - 0.1 * 0.5 * 3, rtol=1e-6)
    np.testing.assert_allclose(vector.numpy(), 3)


def test_the_first_update_by_hand():
    variable = keras.Variable(np.ones(3, "float32"))
    optimizer = make_optimizer(TrainingSettings(), 0.1, [variable], False)
    optimizer.apply([tf.constant([1.0, 0.0, -2.0])], [variable])
    assert int(optimizer.iterations) == 1
    momentum, velocity = optimizer.variables[-2:]
    np.testing.assert_allclose(momentum.numpy(), [0.1, 0.0, -0.2], rtol=1e-6)
    np.testing.assert_allclose(velocity.numpy(), [0.02, 0.0, 0.08], rtol=1e-5)
    # The first update of Adam is the learning rate against the gradient's sign.
    np.testing.assert_allclose(variable.numpy(), [0.9, 1.0, 1.1], rtol=1e-6)
