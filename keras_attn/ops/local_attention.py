"""Attention inside a window, in time and memory linear in the length."""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.block_layout import OneBlockLayout, WindowLayout
from keras_attn.ops.blockwise.either import either
from keras_attn.ops.dropout import DrawnSeed
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.slices import part
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor


class GlobalKeys(NamedTuple):
    """Keys that every query may attend to, at any distance.

    Attributes:
        key: Float tensor (batch, heads, count, key_dim).
        value: Float tensor (batch, heads, count, value_dim).
        mask: Boolean tensor that broadcasts to (batch, heads, length, count), or `None`.
        bias: Float tensor (batch, heads, length, count), added to the scaled scores, or `None`.
    """

    key: Any
    value: Any
    mask: Any = None
    bias: Any = None


def local_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    key_mask: Tensor = None,
    bias: Tensor = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
    global_keys: GlobalKeys | None = None,
) -> Tensor:
    """Computes the softmax attention of each query to the keys less than `window` positions away.

    The sequence is cut into blocks as long as the window reaches; each attends to itself, the
    block before and, unless causal, the one after. No matrix over all pairs is built but for a
    sequence no longer than what a block sees, which is one block. Where the scores are many, one
    segment of some blocks is computed after the other, and once more in the backward pass, which
    keeps none of them.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim), of the same length.
        value: Float tensor (batch, heads, length, value_dim).
        window: How many positions away the nearest key is that is not attended to.
        key_mask: Boolean tensor that broadcasts to (batch, heads, length), True where a key may
            be attended to.
        bias: Float tensor (batch or 1, heads, length or 1, 2 * window - 1), added to the scaled
            scores by the distance of the key, from `1 - window` to `window - 1`.
        is_causal: Whether keys after the query are masked.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.
        global_keys: Further keys, which all queries attend to in the same softmax.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `query`: 0 where a query has
        nothing to attend to. Scores are computed in float32 or wider.

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 4 (restricted
        self-attention); blocks as in Beltagy et al., 2020, https://arxiv.org/abs/2004.05150;
        global keys: Ainslie et al., 2020, https://arxiv.org/abs/2004.08483.
    """
    _, heads, length, _ = ops.shape(query)
    real = ops.ones((1, 1, length), "bool") if key_mask is None else ops.cast(key_mask, "bool")
    given = {"query": query, "key": key, "value": value, "key_mask": real, "bias": bias}
    if global_keys is not None:
        given |= {f"global_{name}": tensor for name, tensor in global_keys._asdict().items()}
    if dropout:
        given["seed"] = seed.next()
    longest = WindowLayout.longest_block(heads, window, is_causal)
    is_short = (length > 0) & (length <= longest)  # blocks are as long as the sequence, and not 0
    ways = (
        partial(_attend, kind.of(length, heads, window, is_causal), dropout)
        for kind in (OneBlockLayout, WindowLayout)
    )
    return either(is_short, *ways, {k: x for k, x in given.items() if x is not None})


def _attend(layout: WindowLayout, dropout: float, **given: Any) -> Tensor:
    """Attention of all queries, segment by segment; arguments by name as in `_SegmentAttention`."""
    length = ops.shape(given["query"])[2]
    given["key_mask"] = ops.expand_dims(given["key_mask"], -1)
    tensors, shared = {}, {}
    for name, tensor in given.items():
        if name in ("key", "value", "key_mask"):
            tensors[name] = layout.with_neighbors(layout.segments(tensor))
        elif name in ("global_key", "global_value", "seed") or tensor.shape[2] == 1:
            shared[name] = tensor
        else:
            tensors[name] = layout.segments(tensor)
    context = layout.map(_SegmentAttention(layout, dropout), tensors, shared, _context_like)
    return part(context, 2, 0, length)


@dataclasses.dataclass(frozen=True)
class _SegmentAttention:
    """Attention of the queries of one segment."""

    layout: WindowLayout
    dropout: float

    def __call__(
        self,
        number: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_mask: Tensor,
        bias: Tensor = None,
        seed: Any = None,
        **global_keys: Any,
    ) -> Tensor:
        """Arguments by name as `local_attention` has them, cut by the layout, and `global_…`."""
        layout, dtype = self.layout, computing_dtype(query.dtype)
        scaled = ops.cast(query, dtype) * query.shape[-1] ** -0.5
        keys = layout.windows(ops.cast(key, dtype))
        # (batch, heads, blocks, size, keys)
        scores = ops.matmul(layout.rows(scaled), ops.swapaxes(keys, -1, -2))
        if bias is not None:
            if layout.is_causal:
                bias = bias[..., : layout.window]  # distances up to 0
            scores += layout.by_key(ops.cast(bias, dtype))
        mask = combine_masks(ops.swapaxes(layout.windows(key_mask), -1, -2), layout.near())
        attends = ops.any(mask, axis=-1, keepdims=True)
        scores = _masked(scores, mask)
        if not global_keys:
            context = ops.matmul(self._weights(scores, value, seed, number), layout.windows(value))
        else:
            far, attends_far = _global_scores(scaled, layout, **global_keys)
            attends = ops.logical_or(attends, attends_far)
            weights = self._weights(ops.concatenate([scores, far], axis=-1), value, seed, number)
            near_count = ops.shape(scores)[-1]
            near = part(weights, -1, 0, near_count)
            far = part(weights, -1, near_count, ops.shape(far)[-1])
            context = ops.matmul(near, layout.windows(value))
            far = ops.matmul(layout.joined(far), ops.cast(global_keys["global_value"], value.dtype))
            context += layout.rows(far)
        context = ops.where(attends, context, ops.zeros((), context.dtype))
        return ops.cast(layout.joined(context), query.dtype)

    def _weights(self, scores: Tensor, value: Tensor, seed: Any, number: Tensor) -> Tensor:
        probabilities = softmax(scores)
        if self.dropout:
            probabilities = drop_out(probabilities, self.dropout, DrawnSeed(seed, number))
        return ops.cast(probabilities, value.dtype)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores with what is masked far below all others; a sum needs no work in the backward pass."""
    zero, masked = (ops.cast(number, scores.dtype) for number in (0.0, MASKED_SCORE))
    return scores + ops.where(mask, zero, masked)


def _context_like(query: Tensor, value: Tensor, **_: Any) -> Tensor:
    return query[..., :1] + ops.zeros((ops.shape(value)[-1],), query.dtype)


def _global_scores(
    query: Tensor,
    layout: WindowLayout,
    global_key: Tensor,
    global_value: Tensor,
    global_mask: Tensor = None,
    global_bias: Tensor = None,
) -> tuple:
    """Masked scores of scaled queries and global keys, and which queries attend to any.

    Returns:
        Tensor (batch, heads, blocks, size, keys), and boolean (batch, heads, blocks, size, 1).
    """
    scores = ops.matmul(query, ops.swapaxes(ops.cast(global_key, query.dtype), -1, -2))
    if global_bias is not None:
        scores += ops.cast(global_bias, query.dtype)
    mask = ops.ones((1, 1, 1, 1), dtype="bool") if global_mask is None else global_mask
    mask = ops.cast(mask, "bool")
    attends = ops.any(mask, axis=-1, keepdims=True)
    attends = ops.broadcast_to(attends, (*ops.shape(scores)[:3], 1))
    return layout.rows(_masked(scores, mask)), layout.rows(attends)
