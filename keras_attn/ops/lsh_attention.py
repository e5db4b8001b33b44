"""Attention among vectors that hash to the same bucket, in memory linear in the length."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blocks import Cut
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.masks import combine_masks
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
    rounds = _Rounds(cut, _padded(buckets, cut, nowhere))

    norm = ops.sqrt(ops.sum(ops.square(queries), axis=-1, keepdims=True))
    keys = queries / ops.maximum(norm, 1e-6)
    queries = queries * query.shape[-1] ** -0.5
    queries = rounds.chunks(cut.pad(queries))
    keys = rounds.windows(cut.pad(keys))
    values = rounds.windows(cut.pad(value))
    seen = rounds.windows(cut.pad(ops.cast(real, "int32")[..., None])) > 0
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))
    # (batch, heads, rounds, chunks, chunk_length, 2 * chunk_length)
    at_query, at_key = rounds.chunk_positions, rounds.window_positions
    mask = combine_masks(
        ops.swapaxes(seen, -1, -2),
        rounds.same_bucket,
        at_key <= at_query if is_causal else None,
    )
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
    totals, contexts = (rounds.in_place(x)[:, :, :, :length] for x in (totals, contexts))
    shares = ops.swapaxes(softmax(ops.swapaxes(totals, 2, -1)), 2, -1)
    return ops.cast(ops.sum(shares * contexts, axis=2), query.dtype)


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


class _Rounds:
    """The order of positions in each round, and what follows from it.

    Args:
        cut: How the length is cut into chunks.
        buckets: int32 (batch, heads, rounds, padded length).
    """

    def __init__(self, cut: Cut, buckets: Any):
        self._cut = cut
        self._buckets = buckets
        self._count = buckets.shape[2]
        length = ops.shape(buckets)[-1]
        order = ops.argsort(buckets * length + ops.arange(length, dtype="int32"), axis=-1)
        self._order = ops.cast(order, "int32")
        self._place = ops.cast(ops.argsort(self._order, axis=-1), "int32")
        positions = self._chunked(self._order[..., None])
        self.chunk_positions = positions
        self.window_positions = ops.swapaxes(_with_previous(positions), -1, -2)
        own = self.chunks(buckets[..., None], of_rounds=True)
        others = ops.swapaxes(self.windows(buckets[..., None], of_rounds=True), -1, -2)
        self.same_bucket = ops.equal(own, others)

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
            bucket = self._buckets[:, :, other, :, None]
            chunk = (self._place[:, :, other] // self._cut.size)[..., None]
            own_bucket, own_chunk = self.chunks(bucket), self.chunks(chunk)
            its_bucket, its_chunk = (ops.swapaxes(self.windows(x), -1, -2) for x in (bucket, chunk))
            back = own_chunk - its_chunk
            meets = combine_masks(own_bucket == its_bucket, back >= 0, back <= 1)
            met = met + ops.cast(meets, dtype)
        return ops.maximum(met, 1.0)

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
    before = ops.concatenate([ops.zeros_like(chunks[:, :, :, :1]), chunks[:, :, :, :-1]], axis=3)
    return ops.concatenate([before, chunks], axis=4)


def _padded(buckets: Any, cut: Cut, nowhere: int) -> Any:
    batch, heads, rounds, _ = ops.shape(buckets)
    if not cut.may_pad:
        return buckets
    behind = ops.full((batch, heads, rounds, cut.padding), nowhere, dtype=buckets.dtype)
    return ops.concatenate([buckets, behind], axis=-1)
