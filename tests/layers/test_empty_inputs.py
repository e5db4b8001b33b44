"""Batches of nothing, as some replicas get at an epoch's end."""

import numpy as np
import pytest

from tests.layers.judges import numpy
from tests.layers.mechanisms import MECHANISMS

SHAPE = (0, 5, 6)


# On TensorFlow a convolution of an empty batch has the wrong length, and nothing can be scattered.
CONVOLUTION, SCATTER = "segmented, compressive memory", "multi-head, chunked"


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != CONVOLUTION])
def test_nothing_gives_nothing(name):
    layer = MECHANISMS[name].make()
    x = np.zeros(SHAPE, "float32")
    assert numpy(layer(x, x)).shape == SHAPE
    mask = np.ones(SHAPE[:2], bool)
    assert numpy(layer(x, x, query_mask=mask, value_mask=mask)).shape == SHAPE


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name", [name for name in MECHANISMS if name not in (CONVOLUTION, SCATTER)]
)
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
