"""Attention among vectors that hash to the same bucket, in memory linear in the length."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.block_layout import BlockLayout, blocks_seen
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.dropout import DrawnSeed
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.hash_rounds import HashOrder, hash_buckets
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.slices import part
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor

# Of a position with itself: attended to where there is nothing else, as in the paper.
SELF_SCORE = -1e5


def lsh_attention(
    query: Tensor,
    value: Tensor,
    rotations: Tensor,
    chunk_length: int,
    real: Tensor = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes attention of shared queries and keys to those in their bucket.

    Keys are the queries at length 1, and scores are not divided by the root of `key_dim` besides,
    as in the authors' program. In each round of hashing positions are sorted by bucket and
    cut into chunks; a position attends to those of its bucket in its own chunk and in the one
    before, to itself only if there is none else. Rounds are weighted by their sums of
    exponentials, and what several rounds attend to counts once. Positions that are not real are
    behind all buckets, so that they change nothing. Where the scores are many, one segment of some
    chunks is computed after the other, and once more in the backward pass, which keeps none.

    Causally a position attends to the last `chunk_length` ones of its bucket before it. Where
    chunks begin depends on the buckets of all positions, so that by the paper's rule those that
    follow would change what is attended to.

    Args:
        query: Float tensor (batch, heads, length, key_dim), key as well.
        value: Float tensor (batch, heads, length, value_dim).
        rotations: Float tensor (heads, key_dim, rounds, buckets / 2), fixed at random.
        chunk_length: Number of positions in a chunk.
        real: Boolean tensor that broadcasts to (batch, heads, length), True where a position may
            be attended to.
        is_causal: Whether a position attends only to those before it, and itself.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `query`: 0 where a position
        has nothing to attend to. Scores are computed in float32 or wider.

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 2 and equations 3 to 7.
    """
    dtype = computing_dtype(query.dtype)
    queries = ops.cast(query, dtype)
    batch, heads, length, _ = ops.shape(queries)
    cut = Cut.into(length, chunk_length)
    buckets = hash_buckets(queries, rotations)  # (batch, heads, rounds, length)
    if real is None:
        real = ops.ones((1, 1, length), dtype="bool")
    real = cut.pad(
        ops.expand_dims(ops.broadcast_to(ops.cast(real, "bool"), (batch, heads, length)), -1)
    )
    nowhere = 2 * rotations.shape[-1]
    buckets = ops.swapaxes(cut.pad(ops.swapaxes(buckets, 2, 3)), 2, 3)
    buckets = ops.where(ops.swapaxes(real, 2, 3), buckets, nowhere)
    order = HashOrder(buckets)

    # The rounds one behind the other: (batch, heads, rounds * padded length, …)
    sizes = BlockLayout.cut(
        rotations.shape[2] * cut.count * cut.size,
        chunk_length,
        heads * blocks_seen(True) * chunk_length**2,
    )
    layout = BlockLayout(chunk_length, *sizes, is_causal=True)
    tensors = {
        "query": order.sort(cut.pad(queries)),
        "value": order.sort(cut.pad(value)),
        "marks": _marks(buckets, order, real),
    }
    tensors = {
        name: layout.with_neighbors(layout.segments(tensor)) for name, tensor in tensors.items()
    }
    shared = {"seed": seed.next()} if dropout else {}
    attention = _ChunkAttention(layout, is_causal, dropout)
    found = layout.map(attention, tensors, shared, attention.like)
    found = part(found, 2, 0, rotations.shape[2] * cut.count * cut.size)
    # Back in their places: (batch, heads, rounds, length, …)
    found = part(order.undo(found), 3, 0, length)
    width = ops.shape(value)[-1]
    contexts, totals = part(found, -1, 0, width), part(found, -1, width, 1)
    shares = ops.swapaxes(softmax(ops.swapaxes(totals, 2, -1)), 2, -1)
    return ops.cast(ops.sum(shares * contexts, axis=2), query.dtype)


def unit_vectors(queries: Tensor) -> Tensor:
    """Queries as keys: of length 1."""
    squares = ops.sum(ops.square(queries), axis=-1, keepdims=True)
    # The root of 0 has no finite gradient.
    return queries / ops.sqrt(ops.maximum(squares, 1e-12))


@dataclasses.dataclass(frozen=True)
class _ChunkAttention:
    """Attention of the queries of one segment, each chunk to itself and the one before."""

    layout: BlockLayout
    is_causal: bool
    dropout: float

    def __call__(
        self, number: Tensor, query: Tensor, value: Tensor, marks: Any, seed: Any = None
    ) -> Tensor:
        """Arguments in the order of their round, with the chunk before; `marks` as `_marks`.

        Returns:
            Context and, last, logarithm of the sum of exponentials,
            (batch, heads, length of a segment, value_dim + 1).
        """
        layout = self.layout
        keys = layout.windows(unit_vectors(query))
        scores = ops.matmul(layout.rows(self._own(query)), ops.swapaxes(keys, -1, -2))
        # (batch, heads, chunks, chunk_length, 2 * chunk_length)
        pairs = _Pairs(
            layout.rows(self._own(marks)),
            ops.swapaxes(layout.windows(marks), -1, -2),
            layout.size,
            self.is_causal,
        )
        scores -= ops.log(ops.cast(pairs.repetitions(), scores.dtype))
        scores = ops.where(pairs.itself(), ops.cast(SELF_SCORE, scores.dtype), scores)
        mask, masked = pairs.meet(), ops.cast(MASKED_SCORE, scores.dtype)
        scores = ops.where(mask, scores, masked)
        totals = ops.logsumexp(scores, axis=-1, keepdims=True)
        probabilities = ops.exp(scores - totals)
        if self.dropout:
            probabilities = drop_out(probabilities, self.dropout, DrawnSeed(seed, number))
        context = ops.matmul(ops.cast(probabilities, value.dtype), layout.windows(value))
        found = ops.concatenate([ops.cast(context, scores.dtype), totals], axis=-1)
        nothing = ops.concatenate(
            [ops.zeros((ops.shape(value)[-1],), scores.dtype), ops.reshape(masked, (1,))]
        )
        attends = ops.any(mask, axis=-1, keepdims=True)
        return layout.joined(ops.where(attends, found, nothing))

    def like(self, query: Tensor, value: Tensor, **_: Any) -> Tensor:
        """A tensor like what a segment gives."""
        value = ops.cast(self._own(value), query.dtype)
        return ops.concatenate([value, value[..., :1]], axis=-1)

    def _own(self, tensor: Tensor) -> Tensor:
        """Without the chunk before."""
        size = self.layout.size
        return part(tensor, 2, size, ops.shape(tensor)[2] - size)


# Columns of marks; a bucket and a place for each round follow.
_REAL, _BUCKET, _PLACE, _OF_ROUNDS = range(4)


def _marks(buckets: Tensor, order: HashOrder, real: Tensor) -> Tensor:
    """Arrays that decide which pairs meet, in the order of each round.

    Returns:
        int32 (batch, heads, rounds * padded length, 3 + 2 * rounds): whether a position is real,
        its bucket in the round, different in each, its place in it, and what they are in all.
    """
    batch, heads, rounds, length = ops.shape(buckets)
    of_position = (buckets, order.place)
    of_position = [ops.cast(real, "int32"), *(ops.swapaxes(x, 2, 3) for x in of_position)]
    marks = order.sort(ops.concatenate(of_position, axis=-1))
    of_rounds = ops.reshape(marks, (batch, heads, rounds, length, 1 + 2 * rounds))
    own = [of_rounds[:, :, round_, :, 1 + round_] * rounds + round_ for round_ in range(rounds)]
    own = ops.reshape(ops.stack(own, axis=2), (batch, heads, rounds * length, 1))
    place = ops.zeros_like(of_rounds[..., 0]) + ops.arange(length, dtype="int32")
    place = ops.reshape(place, (batch, heads, rounds * length, 1))
    return ops.concatenate([marks[..., :1], own, place, marks[..., 1:]], axis=-1)


@dataclasses.dataclass(frozen=True)
class _Pairs:
    """Positions of chunks and those that each sees.

    Attributes:
        at_query: Marks (batch, heads, chunks, chunk_length, marks).
        at_key: Marks (batch, heads, chunks, marks, 2 * chunk_length).
        size: Length of a chunk.
        is_causal: Whether pairs meet by the places between them instead of by their chunks.
    """

    at_query: Any
    at_key: Any
    size: int
    is_causal: bool

    def meet(self) -> Any:
        """The pairs that attend: those near each other in the same bucket of this round."""
        is_real = self.at_key[..., _REAL : _REAL + 1, :] > 0
        return combine_masks(is_real, self._meet(_BUCKET, _PLACE))

    def itself(self) -> Any:
        """Which are one and the same position."""
        return self._back(_PLACE, 1) == 0

    def repetitions(self) -> Any:
        """In how many rounds each pair meets, at least 1: N of the paper's equation 6."""
        rounds = (self.at_query.shape[-1] - _OF_ROUNDS) // 2
        columns = range(_OF_ROUNDS, _OF_ROUNDS + rounds)
        met = sum(ops.cast(self._meet(bucket, bucket + rounds), "int32") for bucket in columns)
        return ops.maximum(met, 1)

    def _meet(self, bucket: int, place: int) -> Any:
        reach, back = self.size, self._back(place, 1)
        if not self.is_causal:
            reach, back = 1, self._back(place, self.size)
        return combine_masks(self._back(bucket, 1) == 0, back >= 0, back <= reach)

    def _back(self, mark: int, unit: int) -> Any:
        """The difference between the marks of queries and keys, in units of `unit`."""
        at_query, at_key = self.at_query[..., mark], self.at_key[..., mark, :]
        if unit != 1:
            at_query, at_key = at_query // unit, at_key // unit
        return ops.expand_dims(at_query, -1) - ops.expand_dims(at_key, -2)
