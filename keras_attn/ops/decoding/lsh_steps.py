"""LSH attention of one position after the other."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops.attention import attend_by_scores, computing_dtype
from keras_attn.ops.decoding.cache import (
    Cache,
    continued,
    query_position,
    slot_positions,
    slots_until,
)
from keras_attn.ops.hash_rounds import hash_buckets
from keras_attn.ops.lsh_attention import SELF_SCORE, unit_vectors
from keras_attn.ops.scores import dot_scores
from keras_attn.tensors import Tensor


class LSHState(NamedTuple):
    """What steps remember of the positions before.

    Attributes:
        cache: Keys and values.
        buckets: int32 (batch, heads, slots, rounds).
    """

    cache: Cache
    buckets: Any


def lsh_attention_step(
    query: Tensor,
    value: Tensor,
    state: LSHState,
    index: Tensor,
    rotations: Tensor,
    chunk_length: int,
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
    cache = state.cache.append(ops.cast(unit_vectors(queries), query.dtype), value, index)
    buckets = cache.added(state.buckets, bucket, index)
    here = query_position(cache, index)
    before = ops.expand_dims(slots_until(cache, here - 1), (1, 3))
    alike = ops.logical_and(ops.equal(buckets, bucket), before)
    # How many of the bucket there are from a slot on, the slot included.
    later = ops.flip(ops.cumsum(ops.flip(ops.cast(alike, "int32"), axis=2), axis=2), axis=2)
    met = ops.expand_dims(ops.any(ops.logical_and(alike, later <= chunk_length), axis=-1), 2)
    itself = ops.equal(slot_positions(cache, 1), here)
    itself = ops.expand_dims(ops.logical_and(itself, slots_until(cache, here)), (1, 2))
    scores = dot_scores(queries, cache.key)
    scores = ops.where(itself, ops.cast(SELF_SCORE, scores.dtype), scores)
    context = attend_by_scores(
        scores,
        cache.value,
        mask=ops.logical_or(met, itself),
        every_query_attends=True,
        dtype=query.dtype,
    )
    return context, LSHState(cache, buckets)


def lsh_state(
    query: Tensor, value: Tensor, state: LSHState, real: Tensor, rotations: Tensor
) -> LSHState:
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
    cache = continued(state.cache, ops.cast(unit_vectors(queries), query.dtype), value, real)
    buckets = _slots_of_buckets(queries, rotations)
    return LSHState(cache, ops.concatenate([buckets, state.buckets], axis=2))


def _slots_of_buckets(vectors: Tensor, rotations: Tensor) -> Tensor:
    """Buckets as a state holds them, (batch, heads, slots, rounds)."""
    return ops.swapaxes(hash_buckets(vectors, rotations), 2, 3)
