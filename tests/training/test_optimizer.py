"""The optimizers against Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.training import TrainingSettings, make_optimizer

SHAPES = [(5, 3), (7,), ()]


def trajectory(make, dtype, steps=7):
    """The variables' values after some steps of the gradients of one and the same seed."""
    rng = np.random.default_rng(3)
    variables = [
        keras.Variable(rng.normal(size=shape).astype(dtype), dtype=dtype) for shape in SHAPES
    ]
    optimizer = make(variables)
    for step in range(steps):
        scale = 10.0 ** (step - 3)  # gradients of many sizes, so that epsilon counts too
        gradients = [tf.constant(scale * rng.normal(size=shape), dtype) for shape in SHAPES]
        optimizer.apply(gradients, variables)
    return [variable.numpy() for variable in variables]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("clip_norm", [0.0, 0.5])
def test_the_fused_update_is_that_of_keras(dtype, weight_decay, clip_norm):
    settings = TrainingSettings(
        weight_decay=weight_decay, clip_norm=clip_norm, beta_1=0.8, beta_2=0.95, epsilon=1e-3
    )
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 7, 0.01)

    def keras_own(variables):
        arguments = {
            "learning_rate": schedule,
            "beta_1": 0.8,
            "beta_2": 0.95,
            "epsilon": 1e-3,
            "global_clipnorm": clip_norm or None,
        }
        if not weight_decay:
            return keras.optimizers.Adam(**arguments)
        optimizer = keras.optimizers.AdamW(weight_decay=weight_decay, **arguments)
        optimizer.exclude_from_weight_decay(var_list=variables[1:])
        return optimizer

    expected = trajectory(keras_own, dtype)
    found = trajectory(lambda v: make_optimizer(settings, schedule, v, False), dtype)
    start = trajectory(keras_own, dtype, steps=0)
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for one, other, before in zip(found, expected, start, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        assert np.max(np.abs(one - before)) > 0.05


def test_the_first_update_by_hand():
    variable = keras.Variable(np.ones(3, "float32"))
    optimizer = make_optimizer(TrainingSettings(clip_norm=0.0), 0.1, [variable], False)
    optimizer.apply([tf.constant([1.0, 0.0, -2.0])], [variable])
    assert int(optimizer.iterations) == 1
    momentum, velocity = optimizer.variables[-2:]
    np.testing.assert_allclose(momentum.numpy(), [0.1, 0.0, -0.2], rtol=1e-6)
    np.testing.assert_allclose(velocity.numpy(), [0.02, 0.0, 0.08], rtol=1e-5)
    # The first update of Adam is the learning rate against the gradient's sign.
    np.testing.assert_allclose(variable.numpy(), [0.9, 1.0, 1.1], rtol=1e-6)
