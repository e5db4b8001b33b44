"""Batches of nothing, as some replicas get at an epoch's end."""

import numpy as np
import pytest

from tests.layers.judges import numpy
from tests.layers.mechanisms import MECHANISMS

SHAPE = (0, 5, 6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_nothing_gives_nothing(name):
    layer = MECHANISMS[name].make()
    x = np.zeros(SHAPE, "float32")
    assert numpy(layer(x, x)).shape == SHAPE
    mask = np.ones(SHAPE[:2], bool)
    assert numpy(layer(x, x, query_mask=mask, value_mask=mask)).shape == SHAPE


def mechanisms_with_gradients():
    reason = "TensorFlow refuses to scatter nothing into nothing"
    marks = {"multi-head, chunked": pytest.mark.xfail(reason=reason, strict=True)}
    return [pytest.param(name, marks=marks.get(name, ())) for name in MECHANISMS]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", mechanisms_with_gradients())
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
