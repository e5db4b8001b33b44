"""The harness itself: Keras' own layers pass where they are right, and each check can fail."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.harness import (
    CHECKS,
    LayerCase,
    SavedElsewhere,
    check_call_keeps_no_state,
    check_config,
    check_copy,
    check_functional_model,
    check_mixed_precision,
    check_shapes,
    check_weights,
    numbers,
)

NORM = LayerCase(
    keras.layers.RMSNormalization,
    {"epsilon": 0.01},
    {"inputs": numbers(1, 2, 3, 5)},
    outputs=(2, 3, 5),
    trainable=1,
)
ATTENTION = LayerCase(
    keras.layers.MultiHeadAttention,
    {"num_heads": 2, "key_dim": 3, "dropout": 0.1},
    {"query": numbers(1, 2, 3, 5), "value": numbers(2, 2, 7, 5)},
    outputs=(2, 3, 5),
    trainable=8,
    non_trainable=1,
)


@pytest.mark.parametrize("case", [NORM, ATTENTION], ids=lambda case: case.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_layers_of_keras_pass(case, check):
    if (case, check) == (ATTENTION, check_config):
        with pytest.raises(AssertionError, match=r"get_config lacks .*flash_attention"):
            check(case)
    else:
        check(case)


class Broken(keras.layers.Layer):
    """Multiplies by a weight; each subclass breaks one promise."""

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape):
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="scale")

    def call(self, inputs):
        return self.factor * inputs * self.scale

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"factor": self.factor}


class ForgetsArgument(Broken):
    def get_config(self):
        return keras.layers.Layer.get_config(self)


class ForgetsValue(Broken):
    def get_config(self):
        return super().get_config() | {"factor": 1.0}


class RemembersCall(Broken):
    def call(self, inputs):
        self.last = ops.shape(inputs)[0]
        return super().call(inputs)


class LiesAboutShape(Broken):
    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 1)


class LearnsNothing(Broken):
    def call(self, inputs):
        return inputs * ops.stop_gradient(self.scale)


class AlwaysFloat32(Broken):
    def call(self, inputs):
        return ops.cast(inputs, "float32") * ops.cast(self.scale, "float32")


def case_of(layer, **changes):
    arguments = {"arguments": {"factor": 3.0}, "outputs": (2, 3, 5), "trainable": 1} | changes
    return LayerCase(layer, inputs={"inputs": numbers(1, 2, 3, 5)}, **arguments)


@pytest.mark.parametrize(
    ("layer", "check", "message"),
    [
        (ForgetsArgument, check_config, "lacks ..factor"),
        (ForgetsValue, check_config, "factor=3.0 became 1.0"),
        (ForgetsValue, check_copy, "Mismatched elements: 30 / 30"),
        (RemembersCall, check_call_keeps_no_state, "a call set ..last"),
        (LiesAboutShape, check_shapes, r"\(3, 1\) == \(3, 5\)"),
        (LearnsNothing, check_functional_model, "Gradients do not exist|left .*scale alone"),
        (AlwaysFloat32, check_mixed_precision, "'float32' == 'float16'"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_broken_layers_fail(layer, check, message):
    with pytest.raises((AssertionError, UserWarning), match=message):
        check(case_of(layer))


def test_weights_and_outputs_are_counted():
    check_weights(case_of(Broken))
    with pytest.raises(AssertionError):
        check_weights(case_of(Broken, trainable=2))
    with pytest.raises(AssertionError):
        check_shapes(case_of(Broken, outputs=(2, 3, 7)))


@pytest.mark.slow
def test_fresh_process_knows_only_what_is_registered(tmp_path):
    saved = SavedElsewhere([NORM, ATTENTION, case_of(Broken)], tmp_path)
    saved.check(NORM)
    saved.check(ATTENTION)
    with pytest.raises(AssertionError, match="Could not locate class 'Broken'"):
        saved.check(case_of(Broken))
    saved.expected[NORM.name] = [np.zeros((2, 3, 5), "float32")]
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        saved.check(NORM)
