"""Attention without a softmax: sums over keys are kept instead of scores."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.masks import causal_mask
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor

_BLOCK = 128


def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_mask: Tensor = None,
    is_causal: bool = False,
    turn_query: Callable | None = None,
    turn_key: Callable | None = None,
) -> Tensor:
    """Computes φ(query) (Σ φ(key)ᵀ value) / φ(query) (Σ φ(key)ᵀ), where φ(x) = elu(x) + 1.

    Time and memory are linear in the lengths. Causally the sums run over the keys up to each
    query: block by block, with products of queries and keys inside a block. What turns features by
    their positions turns those above the line alone, so that the divisor stays positive.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        key: Float tensor (batch, heads, source, key_dim).
        value: Float tensor (batch, heads, source, value_dim).
        key_mask: Boolean tensor that broadcasts to (batch, heads, source), True where a key may
            be attended to.
        is_causal: Whether query i attends only to keys j <= i + source - target.
        turn_query: Turns φ(query), such as by angles that grow with the position, or None.
        turn_key: Turns φ(key), given together with `turn_query`.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `query`: 0 where a query has
        nothing to attend to. Sums are computed in float32 or wider.

    References:
        Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, equations 5 to 9.
        Su et al., 2021, https://arxiv.org/abs/2104.09864, equation 19 (turned by positions).
    """
    if not is_causal:
        return attend_sums(query, sums_of_keys(key, value, key_mask, turn_key), turn_query)
    keys, values = _features(key, value, key_mask)
    queries = feature_map(ops.cast(query, keys.dtype))
    if turn_query is None:
        sums = _causal_sums(queries, keys, values)
    else:
        values, ones = _split_last(values)
        turned = _causal_sums(turn_query(queries), turn_key(keys), values)
        sums = ops.concatenate([turned, _causal_sums(queries, keys, ones)], axis=-1)
    return ops.cast(quotient(sums), query.dtype)


def sums_of_keys(
    key: Tensor, value: Tensor, key_mask: Tensor = None, turn_key: Callable | None = None
) -> Tensor:
    """Sums keys and values up for all queries.

    Args:
        key: Float tensor (batch, heads, source, key_dim).
        value: Float tensor (batch, heads, source, value_dim).
        key_mask: Boolean tensor that broadcasts to (batch, heads, source), or None.
        turn_key: Turns φ(key) where it is multiplied by values, or None.

    Returns:
        Σ φ(key)ᵀ value and, in the last column, Σ φ(key)ᵀ: float32 or wider
        (batch, heads, key_dim, value_dim + 1).
    """
    keys, values = _features(key, value, key_mask)
    if turn_key is None:
        return ops.matmul(ops.swapaxes(keys, -1, -2), values)
    turned = ops.matmul(ops.swapaxes(turn_key(keys), -1, -2), _split_last(values)[0])
    return ops.concatenate([turned, ops.expand_dims(ops.sum(keys, axis=2), -1)], axis=-1)


def attend_sums(query: Tensor, sums: Tensor, turn_query: Callable | None = None) -> Tensor:
    """Attends to what `sums_of_keys` summed up.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        sums: Float tensor (batch, heads, key_dim, value_dim + 1).
        turn_query: Turns φ(query) where it is multiplied by sums of values, or None.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `query`.
    """
    queries = feature_map(ops.cast(query, sums.dtype))
    if turn_query is None:
        products = ops.matmul(queries, sums)
    else:
        of_values, of_ones = _split_last(sums)
        products = [ops.matmul(turn_query(queries), of_values), ops.matmul(queries, of_ones)]
        products = ops.concatenate(products, axis=-1)
    return ops.cast(quotient(products), query.dtype)


class LinearState(NamedTuple):
    """What is kept of the positions so far.

    Attributes:
        sums: The sums over the keys, float32 or wider (batch, heads, key_dim, value_dim + 1).
        start: int32 (batch,), the position at which decoding began, index 0 of the steps.
    """

    sums: Any
    start: Any


def initial_linear_state(
    batch_size: Any, heads: int, key_dim: int, value_dim: int, dtype: str
) -> LinearState:
    """The state before the first position.

    Args:
        batch_size: Number of rows, a number or a scalar int32 tensor.
        heads: Number of heads.
        key_dim: Size of a head's key.
        value_dim: Size of a head's value.
        dtype: Dtype of the layer that attends.

    Returns:
        The state.
    """
    shape = (batch_size, heads, key_dim, value_dim + 1)
    sums = ops.zeros(shape, computing_dtype(dtype))
    return LinearState(sums, ops.zeros((batch_size,), dtype="int32"))


def linear_attention_step(
    query: Tensor, key: Tensor, value: Tensor, state: LinearState, turn: Callable | None = None
) -> tuple:
    """One position of causal linear attention.

    Args:
        query: Float tensor (batch, heads, 1, key_dim).
        key: Float tensor (batch, heads, 1, key_dim).
        value: Float tensor (batch, heads, 1, value_dim).
        state: The state of the positions before.
        turn: Turns features by this position, or None.

    Returns:
        The context (batch, heads, 1, value_dim) and the state with this position.
    """
    sums = state.sums + sums_of_keys(key, value, turn_key=turn)
    return attend_sums(query, sums, turn), LinearState(sums, state.start)


def feature_map(x: Tensor) -> Tensor:
    """elu(x) + 1, which is positive."""
    return ops.elu(x) + 1.0


def with_ones(values: Any) -> Any:
    """Values with one more column of 1, whose sums are the divisors."""
    return ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)


def quotient(sums: Any) -> Any:
    """Sums of values divided by their last column; 0 where that is 0."""
    sums, divisor = _split_last(sums)
    some = ops.greater(divisor, 0)
    return ops.where(some, sums / ops.where(some, divisor, 1.0), 0.0)


def _split_last(x: Tensor) -> tuple[Any, Any]:
    """All columns but the last, and the last."""
    width = ops.shape(x)[-1] - 1
    return part(x, -1, 0, width), part(x, -1, width, 1)


def _features(key: Tensor, value: Tensor, key_mask: Tensor) -> tuple[Any, Any]:
    """Keys as features, 0 where masked, and values with a column of ones, float32 or wider."""
    dtype = computing_dtype(key.dtype)
    keys = feature_map(ops.cast(key, dtype))
    if key_mask is not None:
        keys = ops.multiply(keys, ops.expand_dims(ops.cast(key_mask, dtype), -1))
    return keys, with_ones(ops.cast(value, dtype))


def _causal_sums(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    target, source = ops.shape(queries)[2], ops.shape(keys)[2]
    # The last query is at the last key: the shorter side is filled up at its front.
    queries = _lengthened(queries, target, source)
    keys, values = (_lengthened(x, source, target) for x in (keys, values))
    cut = Cut.of(ops.shape(queries)[2], _BLOCK)
    queries, keys, values = (cut.blocks(x) for x in (queries, keys, values))
    # (batch, heads, count, size, size)
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))
    scores = ops.where(causal_mask(cut.size, cut.size), scores, 0.0)
    of_blocks = ops.matmul(ops.swapaxes(keys, -1, -2), values)
    before = part(ops.cumsum(of_blocks, axis=2), 2, 0, cut.count - 1)
    before = ops.concatenate([ops.zeros_like(of_blocks[:, :, :1]), before], axis=2)
    sums = ops.matmul(scores, values) + ops.matmul(queries, before)
    batch, heads, count, size, width = ops.shape(sums)
    sums = ops.reshape(sums, (batch, heads, count * size, width))
    return part(sums, 2, cut.length - target, target)


def _lengthened(x: Tensor, length: Any, other: Any) -> Tensor:
    """Zeros in front of (batch, heads, length, width) up to the other length, if that is larger."""
    # Under JAX's jit an operation would make an unknown number of known ones.
    known = isinstance(length, int) and isinstance(other, int)
    missing = max(other - length, 0) if known else ops.maximum(other - length, 0)
    if known and not missing:
        return x
    batch, heads, _, width = ops.shape(x)
    return ops.concatenate([ops.zeros((batch, heads, missing, width), x.dtype), x], axis=2)
