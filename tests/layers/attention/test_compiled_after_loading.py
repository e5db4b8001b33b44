"""Attention in segments, saved for unknown lengths and compiled by XLA after it is loaded."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.layers.attention.registry import named_attention
from tests.backends import thinned

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", thinned(["local", "global_local", "lsh"], on_tensorflow=3))
def test_sizes_within_a_loop_are_known_to_the_compiler(name, tmp_path):
    attention = named_attention(name, 2, 4, 128)
    module = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 8], tf.float32),
            tf.TensorSpec([None, None], tf.bool),
        ]
    )
    def attend(inputs, mask):
        return attention(inputs, inputs, query_mask=mask, value_mask=mask)

    draw, real = np.random.default_rng(1), np.arange(100) < 95
    inputs, mask = tf.constant(draw.normal(size=(2, 100, 8)), tf.float32), tf.constant([real] * 2)
    expected = attend(inputs, mask)
    module.variables_of_layer = [variable.value for variable in attention.variables]
    module.attend = attend
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    found = tf.function(loaded.attend, jit_compile=True)(inputs, mask)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
