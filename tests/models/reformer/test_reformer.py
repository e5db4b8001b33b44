"""Reformer: what a Transformer of dense attention and residual blocks would not do."""

import keras
import numpy as np

from keras_attn.models import Reformer
from tests.generation.toy_models import compiled
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

SIZES = {
    "num_layers": 2,
    "hidden_dim": 12,
    "num_heads": 3,
    "intermediate_dim": 17,
    "num_buckets": 8,
    "num_hashes": 1,
    "chunk_length": 4,
}
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

    def logits(training):
        if training:
            return model({"token_ids": IDS}, training=True)
        first = second = model.positions(model.embedding(IDS))
        for block in model.blocks:
            first, second = block(first, second, use_causal_mask=True)
        return model.embedding(model.norm((first + second) / 2), reverse=True)

    found = [gradients(model, lambda t=training: logits(t)) for training in (True, False)]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


def gradients(model, function):
    if keras.backend.backend() == "jax":
        import jax

        values = [v.value for v in model.trainable_variables]

        def loss(values):
            pairs = zip(model.trainable_variables, values, strict=True)
            with keras.StatelessScope(state_mapping=list(pairs)):
                return (function() ** 2).sum() * 1e-3

        return [numpy(gradient) for gradient in jax.jit(jax.grad(loss))(values)]
    if keras.backend.backend() == "torch":
        import torch

        loss = (function() ** 2).sum() * 1e-3
        found = torch.autograd.grad(loss, [v.value for v in model.trainable_variables])
        return [numpy(gradient) for gradient in found]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function() ** 2) * 1e-3
    found = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return [numpy(tf.convert_to_tensor(gradient)) for gradient in found]


def test_from_preset_and_mistakes():
    assert Reformer.from_preset("reformer_tiny", 11).get_config()["num_hashes"] == 2
    refused("`num_buckets` must be even. Received: num_buckets=7", built, num_buckets=7)
    refused("`num_heads` must divide `hidden_dim`", built, num_heads=5)
