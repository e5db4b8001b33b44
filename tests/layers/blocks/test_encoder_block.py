"""TransformerEncoderBlock: where things stand, masks, parts of any kind."""

import keras
import numpy as np
import pytest

from keras_attn.layers import FeedForward, MultiHeadAttention, TransformerEncoderBlock
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

X = numbers(1, 2, 5, 6)
IDS = np.array([[4, 9, 2, 0, 0], [3, 1, 5, 7, 8]], "int32")


def built(attention=None, **arguments):
    attention = attention or MultiHeadAttention(2, 3)
    block = TransformerEncoderBlock(attention, FeedForward(11), **arguments)
    block.build((None, None, 6))
    return spread_weights(block)


def normalised(norm, x):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.epsilon)
    return scaled * numpy(norm.gamma) + numpy(norm.beta)


@pytest.mark.parametrize("norm_first", [False, True])
def test_norms_and_sums_stand_where_the_paper_puts_them(norm_first):
    block = built(norm_first=norm_first, epsilon=1e-3)
    first, second = block.attention_residual.norm, block.feed_forward_residual.norm
    if norm_first:
        x = normalised(first, X)
        y = X + numpy(block.attention(x, x))
        expected = y + numpy(block.feed_forward(normalised(second, y)))
    else:
        y = normalised(first, X + numpy(block.attention(X, X)))
        expected = normalised(second, y + numpy(block.feed_forward(y)))
    assert_close(block(X), expected, atol=5e-6)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("amount", [1, 29])
def test_padding_never_changes_a_real_token(norm_first, amount):
    block = built(norm_first=norm_first)
    padded = np.concatenate([X, 10 * numbers(2, 2, amount, 6)], axis=1)
    mask = np.arange(5 + amount)[None, :] < np.array([[3], [5]])
    found = numpy(block(padded, padding_mask=mask))
    assert_close(found[0, :3], numpy(block(X[:1, :3]))[0], atol=5e-6)
    assert_close(found[1, :5], numpy(block(X[1:]))[0], atol=5e-6)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("functional", [False, True])
def test_a_given_padding_mask_and_the_propagated_one_both_count(norm_first, functional):
    embedding = keras.layers.Embedding(11, 6, mask_zero=True)
    block = built(norm_first=norm_first)
    given = np.array([[False, True, True, True, True], [True, True, True, False, True]])
    embedded = embedding(IDS)
    if functional:
        ids, mask = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="bool")
        output = keras.Model([ids, mask], block(embedding(ids), padding_mask=mask))([IDS, given])
    else:
        output = block(embedded, padding_mask=given)
        assert_same(output._keras_mask, IDS != 0)
    vectors = numpy(embedded)
    both = given & (IDS != 0)
    expected = numpy(block(vectors, padding_mask=both))
    assert_close(numpy(output)[both], expected[both], atol=5e-6)
    assert not np.allclose(expected[both], numpy(block(vectors, padding_mask=IDS != 0))[both])


@pytest.mark.parametrize("shape", [(2, 5, 5), (2, 2, 5, 5), (2, 1, 5, 5)])
def test_padding_and_attention_masks_are_joined(shape):
    block = built()
    allowed = np.random.default_rng(3).random(shape) < 0.7
    padding = IDS != 0
    columns = padding[:, None, :] if len(shape) == 3 else padding[:, None, None, :]
    expected = numpy(block(X, attention_mask=allowed & columns))
    found = numpy(block(X, attention_mask=allowed, padding_mask=padding))
    assert_close(found[padding], expected[padding], atol=1e-6)


def test_causal_on_request():
    block = built()
    whole = numpy(block(X, use_causal_mask=True))
    for length in range(1, 6):
        assert_close(block(X[:, :length], use_causal_mask=True), whole[:, :length], atol=5e-6)


def test_every_block_builds_its_own_parts():
    attention, feed_forward = MultiHeadAttention(2, 3), FeedForward(11)
    blocks = [TransformerEncoderBlock(attention, feed_forward) for _ in range(2)]
    for block in blocks:
        block.build(X.shape)
    assert not attention.built
    assert not feed_forward.built
    kernels = [numpy(block.attention.projections[0].kernel) for block in blocks]
    assert not np.allclose(*kernels)


class Mean(keras.layers.Layer):
    """A stranger's attention: everybody gets the mean."""

    def call(
        self, query, value, key=None, attention_mask=None, training=None, use_causal_mask=False
    ):
        return query * 0 + keras.ops.mean(value, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "attention",
    [
        MultiHeadAttention(2, 3, num_key_value_heads=1),
        MultiHeadAttention(2, 3, sliding_window=2),
        keras.layers.MultiHeadAttention(2, 3),
        Mean(),
    ],
    ids=["grouped", "window", "Keras", "stranger"],
)
def test_any_attention_fits(attention):
    block = built(attention, norm_first=True)
    x = normalised(block.attention_residual.norm, X).astype("float32")
    y = X + numpy(block.attention(x, x))
    z = normalised(block.feed_forward_residual.norm, y).astype("float32")
    expected = y + numpy(block.feed_forward(z))
    assert_close(block(X), expected, atol=5e-6)
    assert type(block.attention) is type(attention)


def test_one_seed_gives_every_dropout_its_own_numbers():
    block = built(dropout=0.5, seed=5)
    states = [
        tuple(numpy(residual.dropout.seed_generator.state).tolist())
        for residual in (block.attention_residual, block.feed_forward_residual)
    ]
    assert states[0] != states[1]
    outputs = [numpy(built(dropout=0.5, seed=5)(X, training=True)) for _ in range(2)]
    assert_same(*outputs)


def test_the_config_of_a_built_block_builds_no_part_twice():
    config = built().get_config()
    assert "build_config" not in config["attention"]
    copy = TransformerEncoderBlock.from_config(config)
    assert copy.count_params() if copy.built else not copy.weights


def test_parts_take_the_precision_of_the_block():
    block = TransformerEncoderBlock(
        MultiHeadAttention(2, 3), FeedForward(11), dtype="mixed_float16"
    )
    block(X)
    flat = {layer.compute_dtype for layer in block._flatten_layers()}
    assert flat == {"float16"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"attention": None},
            "`attention` must be an attention layer, .*Received: attention=None.",
        ),
        (
            {"feed_forward": "relu"},
            "`feed_forward` must be a layer. Received: feed_forward='relu'.",
        ),
        ({"dropout": -0.1}, r"`dropout` must be a number in \[0, 1\). Received: dropout=-0.1."),
    ],
)
def test_mistakes(arguments, message):
    parts = {"attention": MultiHeadAttention(2, 3), "feed_forward": FeedForward(11)}
    refused(message, TransformerEncoderBlock, **parts | arguments)
