"""Reformer: what a Transformer of dense attention and residual blocks would not do."""

from functools import partial

import keras
import numpy as np
from keras import ops

from keras_attn.models import Reformer
from tests.generation.toy_models import compiled
from tests.harness import assert_close, numpy
from tests.layers.differentiation import value_and_gradients
from tests.layers.judges import spread_weights
from tests.models.families import SMALL
from tests.refusals import refused

SIZES = SMALL | {"num_buckets": 8, "num_hashes": 1, "chunk_length": 4}
IDS = np.random.default_rng(1).integers(1, 11, (2, 41)).astype("int32")


def built(**arguments):
    return spread_weights(Reformer(11, **(SIZES | arguments)))


def normalized(x, norm):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * numpy(norm.gamma) + numpy(norm.beta)


def test_two_streams_each_add_to_the_other():
    """Equation 9 of the paper by its layers, in numpy around them."""
    model = built()
    x = numpy(model.positions(model.embedding(IDS)))
    first = second = x
    for block in model.blocks:
        attention, feed_forward = block.attention, block.feed_forward
        y = normalized(second, attention.norm).astype("float32")
        first = first + numpy(attention.part(y, y, use_causal_mask=True))
        second = second + numpy(
            feed_forward.part(normalized(first, feed_forward.norm).astype("float32"))
        )
    expected = normalized((first + second) / 2, model.norm) @ numpy(model.embedding.embeddings).T
    np.testing.assert_allclose(numpy(model({"token_ids": IDS})), expected, atol=2e-4)


def test_a_position_sees_its_bucket_alone():
    model = built(num_layers=1)
    run = compiled(lambda token_ids: model({"token_ids": token_ids}))
    whole, seen = numpy(run(IDS)), 0
    for place in range(40):
        changed = IDS.copy()
        changed[:, place] = changed[:, place] % 10 + 1
        seen += (np.abs(numpy(run(changed))[:, 40] - whole[:, 40]).max(-1) > 1e-6).mean()
    # Dense attention sees all 40. A token that is changed may be hashed to the bucket only then.
    assert 4 < seen < 30


def test_training_keeps_no_block():
    """Gradients by the way back are those of the plain computation."""
    model = built(num_hashes=2, dropout=0.0)

    weights = model.trainable_variables

    def loss(tensors, training):
        with keras.StatelessScope(state_mapping=list(zip(weights, tensors, strict=True))):
            if training:
                return ops.sum(model({"token_ids": IDS}, training=True) ** 2) * 1e-3
            first = second = model.positions(model.embedding(IDS))
            for block in model.blocks:
                first, second = block(first, second, use_causal_mask=True)
            logits = model.embedding(model.norm((first + second) / 2), reverse=True)
            return ops.sum(logits**2) * 1e-3

    values = [numpy(weight.value) for weight in weights]
    found, expected = (
        value_and_gradients(partial(loss, training=training))(values)[1]
        for training in (True, False)
    )
    assert_close(found, expected, atol=2e-4)


def test_from_preset_and_mistakes():
    assert Reformer.from_preset("reformer_tiny", 11).get_config()["num_hashes"] == 2
    refused("`num_buckets` must be even. Received: num_buckets=7", built, num_buckets=7)
    refused("`num_heads` must divide `hidden_dim`", built, num_heads=5)
