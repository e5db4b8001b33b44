"""Attention of blocks to their neighbors, to the first and the last block, and to random ones."""

from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.joint_attention import (
    KeyPiece,
    attend_jointly,
    blocks_of_mask,
    neighbors,
    scaled,
)
from keras_attn.tensors import Tensor


def block_sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_length: int,
    random_places: Tensor = None,
    key_mask: Tensor = None,
    first_repeated: int = 0,
    full_length: int = 0,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes BigBird's attention in one softmax for each query, without a matrix over all pairs.

    A block attends to itself, to the blocks beside it, to the first and the last block, and to
    random ones; the first and the last block attend to everything. The last block is the last one
    that is not masked. Time and memory are linear in the length.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        block_length: Length of a block.
        random_places: Float tensor (2, heads, random blocks) in [0, 1): steps and offsets of
            `random_blocks`, or `None` for no random blocks.
        key_mask: Boolean tensor that broadcasts to (batch, heads, length), True where a key may
            be attended to.
        first_repeated: How many times other blocks attend to the first one in addition.
        full_length: Sequences whose last position that is not masked is before this one attend to
            everything.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `value`: 0 where a query has
        nothing to attend to.

    Reference:
        Zaheer et al., 2020, https://arxiv.org/abs/2007.14062, section 2 and appendix D.
    """
    if full_length:
        full = partial(_full_attention, query, key, value, full_length, key_mask)
        of_short, is_short = full(dropout=dropout, seed=seed)
        if is_short is None:
            return of_short
        options = (block_length, random_places, key_mask, first_repeated)
        of_long = block_sparse_attention(query, key, value, *options, dropout=dropout, seed=seed)
        return ops.where(is_short, of_short, of_long)
    batch, heads, length, _ = ops.shape(query)
    cut = Cut.into(length, block_length)
    query, key, value = cut.blocks(scaled(query)), cut.blocks(key), cut.blocks(value)
    real = ops.expand_dims(blocks_of_mask(cut, key_mask), -1)
    real = ops.broadcast_to(real, (batch, heads, cut.count, block_length, 1))
    at = ops.arange(cut.count, dtype="int32")
    # (batch, heads, 1): the last block with anything real.
    last = ops.where(ops.any(real, axis=(3, 4)), at, 0)
    last = ops.max(last, axis=-1, keepdims=True, initial=0)
    far, is_allowed = _far_blocks(at, last, random_places)
    extra = float(np.log1p(first_repeated))

    def of_repetitions(index: Any) -> Any:
        """What is added to the scores of blocks (…, blocks) for how often they count."""
        bias = ops.repeat(ops.where(ops.equal(index, 0), extra, 0.0), block_length, axis=-1)
        return ops.expand_dims(bias, -2)

    beside = ops.expand_dims(at, 1) + ops.arange(-1, 2, dtype="int32")
    keys, values, mask = (neighbors(x, is_causal=False) for x in (key, value, real))
    near = KeyPiece.of(query, keys, values, ops.swapaxes(mask, -1, -2), of_repetitions(beside))
    keys, values, mask = (_gathered(x, far) for x in (key, value, real))
    allowed = ops.repeat(is_allowed, block_length, axis=-1)
    mask = ops.logical_and(mask, ops.expand_dims(allowed, -1))
    others = KeyPiece.of(query, keys, values, ops.swapaxes(mask, -1, -2), of_repetitions(far))
    context = attend_jointly([near, others], dropout, seed)
    # The two blocks that attend to everything.
    keys, values, mask = (
        ops.reshape(x, (batch, heads, 1, cut.count * block_length, x.shape[-1]))
        for x in (key, value, real)
    )
    last = ops.expand_dims(last, -1)  # (batch, heads, 1, 1)
    few = ops.concatenate([query[:, :, :1], _gathered(query, last)], axis=2)
    everything = KeyPiece.of(few, keys, values, ops.swapaxes(mask, -1, -2))
    of_few = attend_jointly([everything], dropout, seed)
    blocks = ops.reshape(at, (-1, 1, 1))
    context = ops.where(ops.equal(blocks, ops.expand_dims(last, -1)), of_few[:, :, 1:], context)
    return cut.whole(ops.where(ops.equal(blocks, 0), of_few[:, :, :1], context))


def _full_attention(
    query: Tensor, key: Tensor, value: Tensor, full_length: int, key_mask: Tensor, **dropping: Any
) -> tuple[Any, Any]:
    """Attention of the first positions to each other, and which sequences have no others.

    Returns:
        Tensor (batch, heads, length, value_dim), of no meaning in other sequences, and boolean
        (batch or 1, heads or 1, 1, 1), or `None` where all sequences are so short.
    """
    length = ops.shape(query)[2]
    all_short = isinstance(length, int) and length <= full_length
    real = ops.ones((1, 1, length), "bool") if key_mask is None else ops.cast(key_mask, "bool")
    query, key, value = (x[:, :, :full_length] for x in (query, key, value))
    mask = ops.expand_dims(real[:, :, :full_length], 2)
    context = dot_product_attention(query, key, value, mask=mask, **dropping)
    if all_short:
        return context, None
    at = ops.arange(length, dtype="int32")
    ends = ops.max(ops.where(real, at + 1, 0), axis=-1, keepdims=True, initial=0)
    places = ops.minimum(at, ops.shape(context)[2] - 1)
    return ops.take(context, places, axis=2), ops.expand_dims(ends <= full_length, -1)


def random_blocks(at: Tensor, last: Tensor, random_places: Tensor) -> tuple[Any, Any]:
    """Chooses other blocks than the neighbors and the first and last one.

    Block i of a sequence chooses the block at i * step + offset, modulo 1, of those that are left:
    so the choice needs no greatest length, and does not depend on padding.

    Args:
        at: int32 (count,), numbers of blocks.
        last: int32 (batch, heads, 1), number of the last block.
        random_places: Float tensor (2, heads, random blocks): steps and offsets.

    Returns:
        Numbers of blocks, int32 (batch, heads, count, random blocks), and which are new and exist.
    """
    steps, offsets = (ops.expand_dims(x, 1) for x in (random_places[0], random_places[1]))
    at, last = (ops.cast(ops.expand_dims(x, -1), "int32") for x in (at, last))
    place = ops.cast(at, steps.dtype) * steps + offsets  # (heads, count, random blocks)
    # The block beside the first or the last one has a neighbor less that is left out.
    beside_first, beside_last = (ops.cast(ops.equal(at, end), "int32") for end in (1, last - 1))
    left = ops.maximum(last - 4 + ops.maximum(beside_first, beside_last), 0)
    found = ops.cast((place - ops.floor(place)) * ops.cast(left, place.dtype), "int32")
    found = 1 + ops.minimum(found, ops.maximum(left - 1, 0))
    found = ops.where(ops.greater_equal(found, at - 1), found + 3 - beside_first, found)
    number = ops.arange(random_places.shape[-1], dtype="int32")
    again = ops.equal(ops.expand_dims(found, -1), ops.expand_dims(found, -2))
    again = ops.any(ops.logical_and(again, number < ops.expand_dims(number, 1)), axis=-1)
    return found, ops.logical_and(ops.logical_not(again), left > 0)


def _far_blocks(at: Any, last: Any, random_places: Tensor) -> tuple[Any, Any]:
    """Blocks that each block attends to beside its neighbors, and which of them count.

    Returns:
        int32 and boolean (batch, heads, count, blocks).
    """
    first = ops.zeros_like(last) + ops.zeros_like(at)  # (batch, heads, count)
    ends = ops.stack([first, first + last], axis=-1)
    is_allowed = ops.greater(ops.abs(ends - ops.expand_dims(at, -1)), 1)
    if random_places is None:
        return ends, is_allowed
    chosen, is_new = random_blocks(at, last, random_places)
    found = ops.concatenate([ends, chosen], axis=-1)
    return ops.minimum(found, ops.shape(at)[0] - 1), ops.concatenate([is_allowed, is_new], axis=-1)


def _gathered(blocks: Tensor, index: Tensor) -> Any:
    """Chosen blocks side by side.

    Args:
        blocks: Tensor (batch, heads, count, size, width).
        index: int32 (batch, heads, rows, chosen), numbers of blocks.

    Returns:
        Tensor (batch, heads, rows, chosen * size, width).
    """
    batch, heads, count, size, width = ops.shape(blocks)
    start = ops.reshape(ops.arange(batch * heads, dtype="int32") * count, (batch, heads, 1, 1))
    flat = ops.reshape(blocks, (batch * heads * count, size, width))
    found = ops.take(flat, index + start, axis=0)
    _, _, rows, chosen = ops.shape(index)
    return ops.reshape(found, (batch, heads, rows, chosen * size, width))
