"""Blocks computed again in the backward pass: nothing but memory and time changes."""

import keras
import numpy as np
import pytest

from keras_attn import layers
from tests.harness import numpy
from tests.layers.cases import ids

SOURCE = ids(1, 11, 6, 7)
TARGET = ids(2, 11, 6, 5)
SOURCE[0, 3:] = SOURCE[3, 1:] = TARGET[1, 2:] = 0
LABELS = np.roll(TARGET, -1, axis=1)


@keras.saving.register_keras_serializable(package="tests")
class CountingFeedForward(layers.FeedForward):
    """Counts how often it is called with dropout on."""

    calls = 0

    def call(self, inputs, training=None):
        if training:
            CountingFeedForward.calls += 1
        return super().call(inputs, training=training)


def trained(recompute, dtype="float32"):
    """A small encoder-decoder after three updates."""
    keras.utils.set_random_seed(3)
    settings = {"dropout": 0.3, "norm_first": True, "recompute": recompute, "dtype": dtype}
    attention, feed_forward = layers.MultiHeadAttention(2, 4, dropout=0.2), CountingFeedForward(16)
    embedding = keras.layers.Embedding(11, 8, mask_zero=True, dtype=dtype)
    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    x = embedding(source)
    for _ in range(2):
        x = layers.TransformerEncoderBlock(attention, feed_forward, **settings)(x)
    y = embedding(target)
    y = layers.TransformerDecoderBlock(attention, feed_forward, attention, **settings)(y, x)
    y = layers.TransformerDecoderBlock(attention, feed_forward, **settings)(y)
    logits = keras.layers.Dense(11, dtype="float32")(y)
    model = keras.Model([source, target], logits)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compiled = keras.backend.backend() == "jax"  # where op by op is slower
    model.compile(keras.optimizers.SGD(0.05), loss, jit_compile=compiled)
    CountingFeedForward.calls = 0
    model.fit([SOURCE, TARGET], LABELS, batch_size=2, shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float32", 1e-5), pytest.param("mixed_bfloat16", 1e-2, marks=pytest.mark.slow)],
)
def test_the_same_weights_come_out_with_dropout_and_masks(dtype, tolerance):
    kept, recomputed = trained(False, dtype), trained(True, dtype)
    pairs = list(zip(kept.variables, recomputed.variables, strict=True))
    assert len(pairs) > 60
    for one, other in pairs:
        # States of random generators, too: as many numbers were drawn.
        np.testing.assert_allclose(numpy(one), numpy(other), atol=tolerance, err_msg=one.path)


@pytest.mark.tensorflow  # JAX traces a call once and repeats what it saw
@pytest.mark.slow
def test_each_block_is_computed_twice():
    trained(False)
    once = CountingFeedForward.calls
    trained(True)
    assert CountingFeedForward.calls == 2 * once > 0


@pytest.mark.parametrize("block", ["encoder", "decoder"])
def test_recompute_is_part_of_the_configuration(block):
    layer = {
        "encoder": layers.TransformerEncoderBlock(
            layers.MultiHeadAttention(2, 4), layers.FeedForward(8), recompute=True
        ),
        "decoder": layers.TransformerDecoderBlock(
            layers.MultiHeadAttention(2, 4), layers.FeedForward(8), recompute=True
        ),
    }[block]
    assert type(layer).from_config(layer.get_config()).recompute is True
