"""Attention inside a window, in time and memory linear in the length."""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blocks import pad
from keras_attn.ops.devices import has_accelerator
from keras_attn.ops.dropout import DrawnSeed
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.positions import relative_shift
from keras_attn.ops.segments import map_segments
from keras_attn.ops.softmax import MASKED_SCORE, softmax

# Shorter blocks than this make more overhead than they save.
_SMALLEST_BLOCK = 16
# Scores in a segment, as a power of 2: 16 MiB of float32, of which a few are held.
_SEGMENT_SCORES_LOG2 = 22
_SEGMENT_SCORES_LOG2_OF_ACCELERATORS = 26


def block_size(window: int) -> int:
    """The length of the blocks for a window of keys less than `window` positions away."""
    return max(window - 1, _SMALLEST_BLOCK)


class GlobalKeys(NamedTuple):
    """Keys that every query may attend to, wherever it stands.

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
    query: Any,
    key: Any,
    value: Any,
    window: int,
    key_mask: Any = None,
    bias: Any = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
    global_keys: GlobalKeys | None = None,
) -> Any:
    """Computes the softmax attention of each query to the keys less than `window` positions away.

    The sequence is cut into blocks as long as the window reaches; each attends to itself, the
    block before and, unless causal, the one after. No matrix over all pairs is built. Where the
    scores are many, one segment of some blocks is computed after the other, and once more in the
    backward pass, which keeps none of them.

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
        dropout: Share of probabilities that are dropped, in [0, 1).
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
    layout = _Layout.of(length, heads, window, is_causal)
    real = ops.ones((1, 1, length), "bool") if key_mask is None else ops.cast(key_mask, "bool")
    tensors = {
        "query": layout.segments(query),
        "key": layout.with_neighbours(layout.segments(key)),
        "value": layout.with_neighbours(layout.segments(value)),
        "key_mask": layout.with_neighbours(layout.segments(real[..., None])),
    }
    further = {"bias": bias, **{f"global_{k}": v for k, v in _parts(global_keys).items()}}
    shared = {}
    for name, tensor in further.items():
        if tensor is None:
            continue
        by_query = name not in ("global_key", "global_value") and tensor.shape[2] != 1
        (tensors if by_query else shared)[name] = layout.segments(tensor) if by_query else tensor
    if dropout:
        shared["seed"] = seed.next()
    attention = _SegmentAttention(layout, dropout)
    if layout.count == 1 and isinstance(layout.count, int):
        first = {name: tensor[0] for name, tensor in tensors.items()}
        return attention(ops.zeros((), "int32"), **first, **shared)[:, :, :length]
    return layout.join(map_segments(attention, tensors, shared, _context_like))[:, :, :length]


@dataclasses.dataclass(frozen=True)
class _Layout:
    """How a sequence is cut into segments of equally many blocks.

    Attributes:
        window: How many positions away the nearest key is that is not attended to.
        size: Length of a block.
        blocks: Number of blocks in a segment.
        count: Number of segments, a scalar tensor where the length is unknown until run time.
        is_causal: Whether blocks see none after them.
    """

    window: int
    size: int
    blocks: Any
    count: Any
    is_causal: bool

    @classmethod
    def of(cls, length: Any, heads: int, window: int, is_causal: bool) -> "_Layout":
        size = block_size(window)
        scores = heads * size * size * (2 if is_causal else 3)
        bits = _SEGMENT_SCORES_LOG2_OF_ACCELERATORS if has_accelerator() else _SEGMENT_SCORES_LOG2
        most = max(1, 2**bits // scores)
        blocks = (length + size - 1) // size
        count = (blocks + most - 1) // most
        if isinstance(length, int):
            count = max(count, 1)
            most = max((blocks + count - 1) // count, 1)
        return cls(window, size, most, count, is_causal)

    @property
    def length(self) -> int:
        """Length of a segment."""
        return self.blocks * self.size

    def segments(self, tensor: Any) -> Any:
        """(batch, heads, length, width) to (count, batch, heads, length of a segment, width)."""
        batch, heads, length, width = ops.shape(tensor)
        tensor = pad(tensor, 2, self.count * self.length - length)
        tensor = ops.reshape(tensor, (batch, heads, self.count, self.length, width))
        return ops.transpose(tensor, (2, 0, 1, 3, 4))

    def join(self, segments: Any) -> Any:
        """Undoes `segments` but for the padding at the end."""
        _, batch, heads, length, width = ops.shape(segments)
        tensor = ops.transpose(segments, (1, 2, 0, 3, 4))
        return ops.reshape(tensor, (batch, heads, self.count * length, width))

    def with_neighbours(self, segments: Any) -> Any:
        """Each segment behind the last block before it and, unless causal, before the next one."""
        empty = ops.zeros_like(segments[:1, :, :, : self.size])
        last = segments[:-1, :, :, self.length - self.size :]
        parts = [ops.concatenate([empty, last], axis=0), segments]
        if not self.is_causal:
            parts.append(ops.concatenate([segments[1:, :, :, : self.size], empty], axis=0))
        return ops.concatenate(parts, axis=3)

    def rows(self, tensor: Any) -> Any:
        """(batch, heads, length of a segment, width) to (batch, heads, blocks, size, width)."""
        batch, heads, _, width = ops.shape(tensor)
        return ops.reshape(tensor, (batch, heads, self.blocks, self.size, width))

    def windows(self, tensor: Any) -> Any:
        """What each block sees: (…, length with neighbours, …) to (…, blocks, keys, …)."""
        seen = 2 if self.is_causal else 3
        batch, heads, _, width = ops.shape(tensor)
        blocks = (batch, heads, self.blocks + seen - 1, self.size, width)
        tensor = ops.reshape(tensor, blocks)
        return ops.concatenate(
            [tensor[:, :, start : start + self.blocks] for start in range(seen)], axis=3
        )

    def near(self) -> Any:
        """Which of the keys that a block sees each of its queries reaches, (size, keys)."""
        at_query = ops.arange(self.size, dtype="int32") + self.size
        at_key = ops.arange((2 if self.is_causal else 3) * self.size, dtype="int32")
        distances = at_key[None, :] - at_query[:, None]
        near = ops.less(ops.abs(distances), self.window)
        return ops.logical_and(near, ops.less_equal(distances, 0)) if self.is_causal else near


@dataclasses.dataclass(frozen=True)
class _SegmentAttention:
    """Attention of the queries of one segment."""

    layout: _Layout
    dropout: float

    def __call__(
        self,
        number: Any,
        query: Any,
        key: Any,
        value: Any,
        key_mask: Any,
        bias: Any = None,
        seed: Any = None,
        **global_keys: Any,
    ) -> Any:
        """Arguments by name as `local_attention` has them, cut by the layout, and `global_…`."""
        layout, dtype = self.layout, computing_dtype(query.dtype)
        scaled = ops.cast(query, dtype) * query.shape[-1] ** -0.5
        keys = layout.windows(ops.cast(key, dtype))
        # (batch, heads, blocks, size, keys)
        scores = ops.matmul(layout.rows(scaled), ops.swapaxes(keys, -1, -2))
        if bias is not None:
            scores += _bias_of_blocks(ops.cast(bias, dtype), layout)
        real = ops.swapaxes(layout.windows(key_mask), -1, -2)
        mask = combine_masks(real, layout.near())
        scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, dtype))
        attends = ops.any(mask, axis=-1, keepdims=True)
        near = scores.shape[-1]
        if global_keys:
            far, attends_far = _global_scores(scaled, layout, **global_keys)
            scores = ops.concatenate([scores, far], axis=-1)
            attends = ops.logical_or(attends, attends_far)
        probabilities = softmax(scores)
        if self.dropout:
            probabilities = drop_out(probabilities, self.dropout, DrawnSeed(seed, number))
        probabilities = ops.cast(probabilities, value.dtype)
        context = ops.matmul(probabilities[..., :near], layout.windows(value))
        batch, heads, blocks, size, width = ops.shape(context)
        if global_keys:
            rows = (batch, heads, blocks * size)
            far = ops.reshape(probabilities[..., near:], (*rows, ops.shape(far)[-1]))
            far = ops.matmul(far, ops.cast(global_keys["global_value"], value.dtype))
            context += ops.reshape(far, (batch, heads, blocks, size, width))
        context = ops.where(attends, context, ops.zeros((), context.dtype))
        context = ops.reshape(context, (batch, heads, blocks * size, width))
        return ops.cast(context, query.dtype)


def _context_like(query: Any, value: Any, **_: Any) -> Any:
    return ops.repeat(query[..., :1], value.shape[-1], axis=-1)


def _parts(global_keys: GlobalKeys | None) -> dict[str, Any]:
    return {} if global_keys is None else global_keys._asdict()


def _bias_of_blocks(bias: Any, layout: _Layout) -> Any:
    """A bias by distance as one by block: (batch or 1, heads, blocks or 1, size, keys)."""
    size, seen = layout.size, 2 if layout.is_causal else 3
    if layout.is_causal:
        bias = bias[..., : layout.window]  # distances up to 0
    batch, heads, _, columns = ops.shape(bias)
    # Of the distances that a block sees those farther away are masked whatever they get.
    before = 2 * size - layout.window
    after = (seen + 1) * size - 1 - before - columns
    bias = ops.pad(bias, ((0, 0), (0, 0), (0, 0), (before, after)))
    if bias.shape[2] == 1:
        bias = ops.broadcast_to(bias, (batch, heads, size, bias.shape[3]))
        return relative_shift(bias, seen * size)[:, :, None]
    blocked = ops.reshape(bias, (batch, heads * layout.blocks, size, bias.shape[3]))
    shifted = relative_shift(blocked, seen * size)
    return ops.reshape(shifted, (batch, heads, layout.blocks, size, seen * size))


def _global_scores(
    query: Any,
    layout: _Layout,
    global_key: Any,
    global_value: Any,
    global_mask: Any = None,
    global_bias: Any = None,
) -> tuple:
    """Masked scores of scaled queries and global keys, and which queries attend to any.

    Returns:
        Tensor (batch, heads, blocks, size, keys), and boolean (batch, heads, blocks, size, 1).
    """
    scores = ops.matmul(query, ops.swapaxes(ops.cast(global_key, query.dtype), -1, -2))
    if global_bias is not None:
        scores += ops.cast(global_bias, query.dtype)
    mask = ops.ones((1, 1, 1, 1), dtype="bool") if global_mask is None else global_mask
    mask = ops.broadcast_to(ops.cast(mask, "bool"), ops.shape(scores))
    scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, scores.dtype))
    return layout.rows(scores), layout.rows(ops.any(mask, axis=-1, keepdims=True))
