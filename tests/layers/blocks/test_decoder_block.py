"""TransformerDecoderBlock: order of its parts, masks, decoding step by step."""

import keras
import numpy as np
import pytest

from keras_attn.layers import (
    FeedForward,
    MultiHeadAttention,
    RotaryEmbedding,
    TransformerDecoderBlock,
)
from keras_attn.ops.decoding.cache import ancestor_mask, extend_ancestors, initial_ancestors
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.blocks.test_encoder_block import normalised
from tests.layers.judges import assert_steps, spread_weights
from tests.refusals import refused

X = numbers(1, 2, 5, 6)
SOURCE = numbers(2, 2, 11, 13)


def built(cross=True, self_attention=None, **arguments):
    block = TransformerDecoderBlock(
        self_attention or MultiHeadAttention(2, 3),
        FeedForward(11),
        cross_attention=MultiHeadAttention(3, 2, num_key_value_heads=1) if cross else None,
        **arguments,
    )
    block.build((None, None, 6), (None, None, 13) if cross else None)
    return spread_weights(block)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_norms_and_sums_stand_where_the_paper_puts_them(norm_first, cross):
    block = built(cross, norm_first=norm_first)
    causal = np.tril(np.ones((1, 5, 5), bool))
    parts = [
        (block.self_attention_residual, lambda x: block.self_attention(x, x, attention_mask=causal))
    ]
    if cross:
        parts.append((block.cross_attention_residual, lambda x: block.cross_attention(x, SOURCE)))
    parts.append((block.feed_forward_residual, block.feed_forward))
    x = X
    for residual, part in parts:
        if norm_first:
            x = x + numpy(part(normalised(residual.norm, x).astype("float32")))
        else:
            x = normalised(residual.norm, x + numpy(part(x.astype("float32"))))
    found = block(X, SOURCE) if cross else block(X)
    np.testing.assert_allclose(numpy(found), x, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("amount", [1, 29])
def test_padding_never_changes_a_real_token(norm_first, amount):
    block = built(norm_first=norm_first)
    target = np.concatenate([X, 10 * numbers(3, 2, amount, 6)], axis=1)
    source = np.concatenate([SOURCE, 10 * numbers(4, 2, amount, 13)], axis=1)
    target_mask = np.arange(5 + amount)[None, :] < np.array([[3], [5]])
    source_mask = np.arange(11 + amount)[None, :] < np.array([[7], [11]])
    found = numpy(block(target, source, padding_mask=target_mask, source_padding_mask=source_mask))
    np.testing.assert_allclose(found[0, :3], numpy(block(X[:1, :3], SOURCE[:1, :7]))[0], atol=1e-5)
    np.testing.assert_allclose(found[1, :5], numpy(block(X[1:], SOURCE[1:]))[0], atol=1e-5)


def test_masks_that_keras_propagates_count_beside_those_given():
    ids = np.array([[4, 9, 2, 0, 0], [3, 1, 5, 7, 8]], "int32")
    source_ids = np.array([[3] * 7 + [0] * 4, [5] * 11], "int32")
    embed = keras.layers.Embedding(11, 6, mask_zero=True)
    embed_source = keras.layers.Embedding(11, 13, mask_zero=True)
    block = built()
    given = np.ones((2, 5), bool)
    given[:, 1] = False
    given_source = np.ones((2, 11), bool)
    given_source[:, 2] = False
    masked, masked_source = embed(ids), embed_source(source_ids)
    found = block(masked, masked_source, padding_mask=given, source_padding_mask=given_source)
    both, both_source = given & (ids != 0), given_source & (source_ids != 0)
    vectors, source = numpy(masked), numpy(masked_source)
    expected = block(vectors, source, padding_mask=both, source_padding_mask=both_source)
    np.testing.assert_allclose(numpy(found)[both], numpy(expected)[both], atol=1e-5)
    np.testing.assert_array_equal(numpy(found._keras_mask), ids != 0)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"num_key_value_heads": 1}, {"sliding_window": 3}])
def test_steps_equal_the_whole(norm_first, arguments):
    block = built(self_attention=MultiHeadAttention(2, 3, **arguments), norm_first=norm_first)
    # Two sources, three hypotheses of each that never change places.
    x = numbers(5, 2, 3, 7, 6)
    source_mask = np.arange(11)[None, :] < np.array([[7], [11]])
    expected = numpy(
        block(
            x.reshape(6, 7, 6),
            np.repeat(SOURCE, 3, axis=0),
            source_padding_mask=np.repeat(source_mask, 3, axis=0),
        )
    ).reshape(2, 3, 7, 6)
    cache = block.initial_cache(2, 9, beams=3)
    ancestors = initial_ancestors(6, 9)
    projected = block.project_source(SOURCE, source_mask)
    assert projected["key"].shape[0] == 2  # once a source
    for index in range(7):
        ancestors = extend_ancestors(ancestors, 3, index, growing=False)
        output, cache = block.decode_step(
            x[:, :, index], cache, index, projected, ancestor_mask(ancestors, 3)
        )
        np.testing.assert_allclose(numpy(output), expected[:, :, index], atol=1e-5)


def test_rows_step_at_positions_of_their_own():
    block = built()
    source_mask = np.arange(11)[None, :] < np.array([[7], [11]])
    expected = numpy(block(X, SOURCE, source_padding_mask=source_mask))
    cache, projected = block.initial_cache(2, 5), block.project_source(SOURCE, source_mask)
    for index in range(7):  # the second row is two positions late
        position = np.array([min(index, 4), max(index - 2, 0)], "int32")
        output, cache = block.decode_step(X[[0, 1], position][:, None], cache, position, projected)
        np.testing.assert_allclose(numpy(output)[:, 0], expected[[0, 1], position], atol=1e-5)


def test_decoder_only_steps_equal_the_whole():
    block = built(cross=False, norm_first=True)
    expected = numpy(block(X))
    assert_steps(block.decode_step, block.initial_cache(2, 5), X, expected, atol=1e-5)


def test_not_causal_on_request():
    block = built(cross=False)
    changed = X.copy()
    changed[:, -1] += 1
    first = [numpy(block(x, use_causal_mask=False))[:, 0] for x in (X, changed)]
    assert not np.allclose(*first)
    first = [numpy(block(x))[:, 0] for x in (X, changed)]
    np.testing.assert_array_equal(*first)


def test_keras_attention_trains_but_does_not_decode():
    block = built(self_attention=keras.layers.MultiHeadAttention(2, 3))
    assert tuple(block(X, SOURCE).shape) == (2, 5, 6)
    refused("needs a layer .* Received: self_attention='Mult", block.initial_cache, 2, 5)
    block = TransformerDecoderBlock(
        MultiHeadAttention(2, 3), FeedForward(11), keras.layers.MultiHeadAttention(2, 3)
    )
    refused("needs a layer .* Received: cross_attention='Mu", block.project_source, SOURCE)


def test_mistakes():
    refused("source_given=False, cross_attention='MultiHeadAttention'", built(), X)
    refused("source_given=True, cross_attention=None", built(cross=False), X, SOURCE)
    with pytest.raises(
        UserError, match="no relative positions.*, relative_positions='RotaryEmbedding'"
    ):
        TransformerDecoderBlock(
            MultiHeadAttention(2, 6),
            FeedForward(11),
            MultiHeadAttention(2, 6, relative_positions=RotaryEmbedding()),
        )
    with pytest.raises(UserError, match="`cross_attention` must be an attention layer, .*=3."):
        TransformerDecoderBlock(MultiHeadAttention(2, 3), FeedForward(11), 3)
