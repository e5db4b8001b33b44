"""Attention among vectors that hash to the same bucket, in memory linear in the length."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import attend_by_scores, computing_dtype
from keras_attn.ops.blocks import Cut
from keras_attn.ops.decoding_cache import (
    Cache,
    continued,
    query_position,
    slot_positions,
    slots_until,
)
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.scores import dot_scores
from keras_attn.ops.slices import part
from keras_attn.ops.softmax import MASKED_SCORE, softmax

# Of a position with itself: attended to where there is nothing else, as in the paper.
_SELF_SCORE = -1e5


def lsh_attention(
    query: Any,
    value: Any,
    rotations: Any,
    chunk_length: int,
    real: Any = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Any:
    """Computes attention of shared queries and keys to those in their bucket.

    Keys are the queries, normalised. In each round of hashing positions are sorted by bucket and
    cut into chunks; a position attends to those of its bucket in its own chunk and in the one
    before, to itself only if there is none else. Rounds are weighted by their sums of
    exponentials, and what several rounds attend to counts once. Positions that are not real stand
    behind all buckets, so that they change nothing.

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
        dropout: Share of probabilities that are dropped, in [0, 1).
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
    cut = Cut(length, (length + chunk_length - 1) // chunk_length, chunk_length)
    buckets = hash_buckets(queries, rotations)  # (batch, heads, rounds, length)
    if real is None:
        real = ops.ones((1, 1, length), dtype="bool")
    real = ops.broadcast_to(ops.cast(real, "bool"), (batch, heads, length))
    nowhere = 2 * rotations.shape[-1]
    buckets = ops.where(real[:, :, None], buckets, nowhere)
    rounds = _Rounds(cut, _padded(buckets, cut, nowhere), is_causal)

    keys = _keys(queries)
    queries = queries * query.shape[-1] ** -0.5
    queries = rounds.chunks(cut.pad(queries))
    keys = rounds.windows(cut.pad(keys))
    values = rounds.windows(cut.pad(value))
    seen = rounds.windows(cut.pad(ops.cast(real, "int32")[..., None])) > 0
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))
    # (batch, heads, rounds, chunks, chunk_length, 2 * chunk_length)
    at_query, at_key = rounds.chunk_positions, rounds.window_positions
    mask = combine_masks(ops.swapaxes(seen, -1, -2), rounds.meets)
    scores = ops.where(at_query == at_key, _SELF_SCORE, scores - ops.log(rounds.repetitions(dtype)))
    scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, dtype))
    totals = ops.logsumexp(scores, axis=-1, keepdims=True)
    probabilities = ops.exp(scores - totals)
    if dropout:
        probabilities = drop_out(probabilities, dropout, seed)
    contexts = ops.matmul(ops.cast(probabilities, value.dtype), values)
    attends = ops.any(mask, axis=-1, keepdims=True)
    totals = ops.where(attends, totals, ops.cast(MASKED_SCORE, dtype))
    contexts = ops.where(attends, ops.cast(contexts, dtype), ops.zeros((), dtype))
    # Back in their places: (batch, heads, rounds, length, …)
    totals, contexts = (part(rounds.in_place(x), 3, 0, length) for x in (totals, contexts))
    shares = ops.swapaxes(softmax(ops.swapaxes(totals, 2, -1)), 2, -1)
    return ops.cast(ops.sum(shares * contexts, axis=2), query.dtype)


class LSHState(NamedTuple):
    """What steps remember of the positions before.

    Attributes:
        cache: Keys and values.
        buckets: int32 (batch, heads, slots, rounds).
    """

    cache: Cache
    buckets: Any


def lsh_attention_step(
    query: Any, value: Any, state: LSHState, index: Any, rotations: Any, chunk_length: int
) -> tuple[Any, LSHState]:
    """One position of causal `lsh_attention`.

    Args:
        query: Float tensor (batch, heads, 1, key_dim).
        value: Float tensor (batch, heads, 1, value_dim).
        state: The state of the positions before.
        index: Position, int32: a scalar, or one for each row (batch,).
        rotations: As for `lsh_attention`.
        chunk_length: As for `lsh_attention`.

    Returns:
        The context (batch, heads, 1, value_dim) and the state with this position.
    """
    queries = ops.cast(query, computing_dtype(query.dtype))
    bucket = _slots_of_buckets(queries, rotations)  # (batch, heads, 1, rounds)
    cache = state.cache.append(ops.cast(_keys(queries), query.dtype), value, index)
    buckets = cache.added(state.buckets, bucket, index)
    here = query_position(cache, index)
    before = slots_until(cache, here - 1)[:, None, :, None]
    alike = ops.logical_and(ops.equal(buckets, bucket), before)
    # How many of the bucket there are from a slot on, the slot included.
    later = ops.flip(ops.cumsum(ops.flip(ops.cast(alike, "int32"), axis=2), axis=2), axis=2)
    met = ops.any(ops.logical_and(alike, later <= chunk_length), axis=-1)[:, :, None]
    itself = ops.equal(slot_positions(cache, 1), here)
    itself = ops.logical_and(itself, slots_until(cache, here))[:, None, None]
    scores = dot_scores(queries * query.shape[-1] ** -0.5, cache.key)
    scores = ops.where(itself, ops.cast(_SELF_SCORE, scores.dtype), scores)
    context = attend_by_scores(
        scores,
        cache.value,
        mask=ops.logical_or(met, itself),
        every_query_attends=True,
        dtype=query.dtype,
    )
    return context, LSHState(cache, buckets)


def lsh_state(query: Any, value: Any, state: LSHState, real: Any, rotations: Any) -> LSHState:
    """The state after a prompt.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        state: The state before the first position.
        real: Boolean (batch, length), which positions count: the first ones of each sequence.
        rotations: As for `lsh_attention`.

    Returns:
        The state.
    """
    queries = ops.cast(query, computing_dtype(query.dtype))
    cache = continued(state.cache, ops.cast(_keys(queries), query.dtype), value, real)
    buckets = _slots_of_buckets(queries, rotations)
    return LSHState(cache, ops.concatenate([buckets, state.buckets], axis=2))


def hash_buckets(vectors: Any, rotations: Any) -> Any:
    """Hashes vectors: h(x) = argmax([xR, -xR]).

    Args:
        vectors: Float tensor (batch, heads, length, key_dim).
        rotations: Float tensor (heads, key_dim, rounds, buckets / 2).

    Returns:
        int32 tensor (batch, heads, rounds, length).
    """
    rotated = ops.einsum("bhld,hdrf->bhrlf", vectors, ops.cast(rotations, vectors.dtype))
    return ops.argmax(ops.concatenate([rotated, -rotated], axis=-1), axis=-1)


def _slots_of_buckets(vectors: Any, rotations: Any) -> Any:
    """Buckets as a state holds them, (batch, heads, slots, rounds)."""
    return ops.swapaxes(hash_buckets(vectors, rotations), 2, 3)


def _keys(queries: Any) -> Any:
    """Queries of length 1."""
    norm = ops.sqrt(ops.sum(ops.square(queries), axis=-1, keepdims=True))
    return queries / ops.maximum(norm, 1e-6)


class _Rounds:
    """The order of positions in each round, and what follows from it.

    Args:
        cut: How the length is cut into chunks.
        buckets: int32 (batch, heads, rounds, padded length).
        is_causal: Whether pairs meet by the places between them instead of by their chunks.

    Attributes:
        meets: Which keys a query may attend to by bucket and place,
            (batch, heads, rounds, chunks, chunk_length, 2 * chunk_length).
        chunk_positions: Position of each query, (…, chunk_length, 1).
        window_positions: Position of each key, (…, 1, 2 * chunk_length).
    """

    def __init__(self, cut: Cut, buckets: Any, is_causal: bool):
        self._cut = cut
        self._is_causal = is_causal
        self._buckets = buckets
        self._count = buckets.shape[2]
        length = ops.shape(buckets)[-1]
        order = ops.argsort(buckets * length + ops.arange(length, dtype="int32"), axis=-1)
        self._order = ops.cast(order, "int32")
        self._place = ops.cast(ops.argsort(self._order, axis=-1), "int32")
        positions = self._chunked(self._order[..., None])
        self.chunk_positions = positions
        self.window_positions = ops.swapaxes(_with_previous(positions), -1, -2)
        self.meets = self._meets(
            *(self.chunks(x[..., None], of_rounds=True) for x in (buckets, self._place))
        )

    def chunks(self, tensor: Any, of_rounds: bool = False) -> Any:
        """Sorts (batch, heads, length, width) and cuts it into chunks.

        With `of_rounds` the tensor has another value in each round, (batch, heads, rounds, …).

        Returns:
            Tensor (batch, heads, rounds, chunks, chunk_length, width).
        """
        tensor = tensor if of_rounds else tensor[:, :, None]
        return self._chunked(_taken(tensor, self._order))

    def windows(self, tensor: Any, of_rounds: bool = False) -> Any:
        """Like `chunks`, each behind the one before: (…, chunks, 2 * chunk_length, width)."""
        return _with_previous(self.chunks(tensor, of_rounds))

    def repetitions(self, dtype: str) -> Any:
        """In how many rounds each pair meets, at least 1: N of the paper's equation 6."""
        met = 0
        for other in range(self._count):
            bucket, place = self._buckets[:, :, other], self._place[:, :, other]
            meets = self._meets(*(self.chunks(x[..., None]) for x in (bucket, place)))
            met = met + ops.cast(meets, dtype)
        return ops.maximum(met, 1.0)

    def _meets(self, bucket: Any, place: Any) -> Any:
        """Which pairs meet, by buckets and places in some round, sorted and cut by this one."""
        reach, back = self._cut.size, _pairs(place)
        if not self._is_causal:
            reach, back = 1, _pairs(place // self._cut.size)
        return combine_masks(_pairs(bucket) == 0, back >= 0, back <= reach)

    def in_place(self, chunks: Any) -> Any:
        """Undoes the sorting: (…, chunks, chunk_length, width) to (…, padded length, width)."""
        batch, heads, rounds, count, size, width = ops.shape(chunks)
        return _taken(ops.reshape(chunks, (batch, heads, rounds, count * size, width)), self._place)

    def _chunked(self, tensor: Any) -> Any:
        batch, heads, rounds, _, width = ops.shape(tensor)
        cut = self._cut
        return ops.reshape(tensor, (batch, heads, rounds, cut.count, cut.size, width))


def _taken(tensor: Any, indices: Any) -> Any:
    """Rows of (batch, heads, rounds or 1, length, width) by indices (batch, heads, rounds, …)."""
    return ops.take_along_axis(tensor, indices[..., None], axis=3)


def _with_previous(chunks: Any) -> Any:
    earlier = part(chunks, 3, 0, ops.shape(chunks)[3] - 1)
    before = ops.concatenate([ops.zeros_like(chunks[:, :, :, :1]), earlier], axis=3)
    return ops.concatenate([before, chunks], axis=4)


def _pairs(chunks: Any) -> Any:
    """Differences of chunks' values and their windows': (…, chunk_length, 2 * chunk_length)."""
    return chunks - ops.swapaxes(_with_previous(chunks), -1, -2)


def _padded(buckets: Any, cut: Cut, nowhere: int) -> Any:
    batch, heads, rounds, _ = ops.shape(buckets)
    if not cut.may_pad:
        return buckets
    behind = ops.full((batch, heads, rounds, cut.padding), nowhere, dtype=buckets.dtype)
    return ops.concatenate([buckets, behind], axis=-1)
