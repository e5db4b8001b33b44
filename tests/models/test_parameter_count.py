"""parameter_count: the right number, and nothing left behind."""

import keras
import pytest

from keras_attn.models.parameter_count import parameter_count
from tests.harness import numpy


def huge():
    return keras.Sequential([keras.Input((10**6,)), keras.layers.Dense(10**7)])


def test_trainable_parameters_by_hand():
    assert parameter_count(huge) == 10**13 + 10**7

    def frozen():
        model = huge()
        model.trainable = False
        return model

    assert parameter_count(frozen) == 0


def test_nothing_is_allocated_later():
    parameter_count(huge)  # 40 TB
    layer = keras.layers.Dense(2)
    layer.build((1, 3))
    outputs, _ = layer.stateless_call(layer.trainable_variables, [], [[1.0, 2.0, 3.0]])
    assert numpy(outputs).shape == (1, 2)


def test_mistakes_come_through():
    with pytest.raises(ValueError, match="units=0"):
        parameter_count(lambda: keras.Sequential([keras.layers.Dense(0)]))
