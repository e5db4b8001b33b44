"""Reversible blocks: what went in follows from what came out, and gradients need no more."""

import keras
import numpy as np
import pytest

from keras_attn.layers import (
    FeedForward,
    LSHAttention,
    MultiHeadAttention,
    ReversibleBlock,
    ReversibleStack,
)
from tests.harness import assert_saved, numbers, numpy
from tests.layers.judges import called
from tests.refusals import refused

FIRST, SECOND = numbers(1, 2, 7, 6), numbers(2, 2, 7, 6)
IDS = np.array([[4, 9, 2, 5, 0, 0, 0], [3, 1, 5, 7, 8, 2, 6]], "int32")


def block(attention=None, **arguments):
    return ReversibleBlock(attention or MultiHeadAttention(2, 3), FeedForward(11), **arguments)


def built(count=3, **arguments):
    return called(ReversibleStack([block(**arguments) for _ in range(count)]), FIRST, SECOND)


def test_a_block_computes_the_papers_equations():
    layer = called(block(), FIRST, SECOND)
    first, second = (numpy(x) for x in layer(FIRST, SECOND, use_causal_mask=True))
    attention, feed_forward = layer.attention, layer.feed_forward
    x = numpy(attention.norm(SECOND))
    expected = FIRST + numpy(attention.part(x, x, use_causal_mask=True))
    np.testing.assert_allclose(first, expected, atol=2e-6)
    x = numpy(feed_forward.norm(expected))
    np.testing.assert_allclose(second, SECOND + numpy(feed_forward.part(x)), atol=2e-6)


def test_the_inverse():
    layer = called(block(), FIRST, SECOND)
    mask = IDS > 0
    outputs = layer(FIRST, SECOND, padding_mask=mask)
    back = layer.inverse(*outputs, padding_mask=mask)
    np.testing.assert_allclose(numpy(back[0])[mask], FIRST[mask], atol=2e-6)
    np.testing.assert_allclose(numpy(back[1])[mask], SECOND[mask], atol=2e-6)


class Plain(ReversibleStack):
    """The blocks with the gradients that the backend makes by itself."""

    def call(self, first, second, padding_mask=None, attention_mask=None, **options):
        for part in self.blocks:
            first, second = part(first, second, padding_mask, attention_mask, **options)
        return first, second


def trained(kind, attention=None, jit_compile=False, dtype="float32"):
    keras.utils.set_random_seed(3)
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(11, 6, mask_zero=True, dtype=dtype)(ids)
    blocks = [block(attention, dropout=0.3, seed=number, dtype=dtype) for number in range(2)]
    first, second = kind(blocks, dtype=dtype)(x, x, use_causal_mask=True)
    model = keras.Model(ids, keras.layers.Dense(11, dtype="float32")(first + second))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.02), loss, jit_compile=jit_compile)
    options = {"sample_weight": np.float32(IDS > 0), "epochs": 3, "shuffle": False, "verbose": 0}
    history = model.fit(IDS, np.roll(IDS, -1, 1), **options)
    return model, history.history["loss"]


LSH = LSHAttention(2, 3, 4, chunk_length=2, dropout=0.2, seed=1)
WAYS = [
    pytest.param(None, False, id="multi-head"),
    pytest.param(LSH, False, id="LSH", marks=pytest.mark.slow),
]
if keras.backend.backend() != "torch":  # whose compiler takes minutes
    WAYS.append(pytest.param(None, True, id="multi-head, compiled", marks=pytest.mark.slow))


@pytest.mark.parametrize(("attention", "jit_compile"), WAYS)
def test_training_equals_that_with_the_usual_gradients(attention, jit_compile):
    ours, losses = trained(ReversibleStack, attention, jit_compile)
    plain, expected = trained(Plain, attention, jit_compile)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for a, b in zip(ours.weights, plain.weights, strict=True):
        np.testing.assert_allclose(numpy(a), numpy(b), atol=2e-4, err_msg=a.path)


@pytest.mark.slow
def test_mixed_precision():
    _, losses = trained(ReversibleStack, dtype="mixed_bfloat16")
    _, expected = trained(Plain, dtype="mixed_bfloat16")
    np.testing.assert_allclose(losses[:2], expected[:2], rtol=0.01)
    # At the third update what rounding differs by has grown.
    np.testing.assert_allclose(losses[2], expected[2], rtol=0.1)


@pytest.mark.tensorflow
def test_no_block_draws_its_dropout_before_the_blocks_before_it():
    """What is drawn early is kept until it is used: memory would grow with the depth."""
    import tensorflow as tf

    stack = built(3, dropout=0.5)

    @tf.function
    def backward(first, second):
        with tf.GradientTape() as tape:
            tape.watch((first, second))
            first_out, second_out = stack(first, second, training=True)
            loss = tf.reduce_sum(first_out * second_out)
        return tape.gradient(loss, (first, second))

    graph = backward.get_concrete_function(tf.constant(FIRST), tf.constant(SECOND)).graph
    drawing = [op for op in graph.get_operations() if op.type.startswith("StatelessRandom")]
    # Forward and backward, after the attention and after the feed-forward part of each block.
    products = sorted(count_of_products_before(op) for op in drawing if op.type.endswith("IntV2"))
    assert len(products) == 2 * 3 * 2
    assert len(set(products)) == len(products), products


def count_of_products_before(op):
    """How many matrix products have been computed before an operation."""
    seen, ahead = set(), [op]
    while ahead:
        op = ahead.pop()
        if op.name not in seen:
            seen.add(op.name)
            ahead += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return sum(name.rsplit("/")[-1].startswith(("MatMul", "einsum", "Einsum")) for name in seen)


def test_padding_changes_nothing():
    stack = built()
    mask = np.arange(7)[None, :] < np.array([[4], [7]])
    for training in (False, True):
        found = stack(FIRST, SECOND, padding_mask=mask, training=training)
        expected = stack(FIRST[:1, :4], SECOND[:1, :4], training=training)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(numpy(ours)[:1, :4], numpy(theirs), atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_a_mask_that_keras_propagates_counts(training):
    stack, embedding = built(), keras.layers.Embedding(11, 6, mask_zero=True)
    found = stack(embedding(IDS), embedding(IDS), training=training)
    expected = stack(embedding(IDS[:1, :4]), embedding(IDS[:1, :4]), training=training)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(numpy(ours)[:1, :4], numpy(theirs), atol=1e-5)


def test_is_saved_and_loaded(tmp_path):
    x = keras.Input((None, 6))
    model = keras.Model(x, built(2, dropout=0.1, epsilon=1e-3, seed=5)(x, x))
    assert_saved(model, FIRST, tmp_path)


def test_mistakes_are_told():
    refused("must be ReversibleBlocks. Received: blocks=", ReversibleStack, [FeedForward(3)])
    refused("must be ReversibleBlocks", ReversibleStack, [])
    twice = block(name="one")
    refused("must be different layers.* blocks=.'one', 'one'.", ReversibleStack, [twice, twice])
    refused("`dropout` .* Received: dropout=2", block, dropout=2)
