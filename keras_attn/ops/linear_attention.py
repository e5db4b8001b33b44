"""Attention without a softmax: sums over keys are kept instead of scores."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.running_sums import NO_SCALE, running_sums
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor


class Features(NamedTuple):
    """Keys as positive features.

    Attributes:
        numbers: Float tensor (batch, heads, source, features), 0 or more.
        log_scale: The features are `numbers` times the exponential of this: float
            (batch, heads, source, 1), or `None` where they are the numbers themselves.
    """

    numbers: Any
    log_scale: Any = None

    def seen(self, key_mask: Tensor) -> "Features":
        """The features, 0 where a mask (batch, heads, source) hides a key."""
        if key_mask is None:
            return self
        mask = ops.expand_dims(ops.cast(key_mask, "bool"), -1)
        numbers = ops.where(mask, self.numbers, 0.0)
        if self.log_scale is None:
            return Features(numbers)
        return Features(numbers, ops.where(mask, self.log_scale, NO_SCALE))


def linear_attention(
    query: Tensor,
    key: Features,
    value: Tensor,
    key_mask: Tensor = None,
    is_causal: bool = False,
    turn_query: Callable | None = None,
    turn_key: Callable | None = None,
) -> Tensor:
    """Computes φ(query) (Σ φ(key)ᵀ value) / φ(query) (Σ φ(key)ᵀ) of given features φ.

    Time and memory are linear in the lengths. Causally the sums run over the keys up to each
    query: block by block, with products of queries and keys inside a block. What turns features by
    their positions turns those above the line alone, so that the divisor stays positive.

    Args:
        query: Positive features of the queries, float32 or wider (batch, heads, target, features).
        key: Positive features of the keys, of the same dtype.
        value: Float tensor (batch, heads, source, value_dim).
        key_mask: Boolean tensor that broadcasts to (batch, heads, source), True where a key may
            be attended to.
        is_causal: Whether query i attends only to keys j <= i + source - target.
        turn_query: Turns φ(query), such as by angles that grow with the position, or None.
        turn_key: Turns φ(key), given together with `turn_query`.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `value`: 0 where a query has
        nothing to attend to.

    References:
        Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, equations 5 to 9.
        Su et al., 2021, https://arxiv.org/abs/2104.09864, equation 19 (turned by positions).
    """
    if not is_causal:
        sums = sums_of_keys(key, value, key_mask, turn_key)
        return ops.cast(attend_sums(query, sums.sums, turn_query), value.dtype)
    numbers, log_scale = key.seen(key_mask)
    values = _with_ones(ops.cast(value, numbers.dtype))
    if turn_query is None:
        sums, _ = running_sums(query, numbers, values, log_scale)
    else:
        values, ones = _split_last(values)
        turned, _ = running_sums(turn_query(query), turn_key(numbers), values, log_scale)
        divisors, _ = running_sums(query, numbers, ones, log_scale)
        sums = ops.concatenate([turned, divisors], axis=-1)
    return ops.cast(_quotient(sums), value.dtype)


class KeySums(NamedTuple):
    """Keys and values summed up.

    Attributes:
        sums: Σ φ(key)ᵀ value and, in the last column, Σ φ(key)ᵀ: float32 or wider
            (batch, heads, features, value_dim + 1).
        log_scale: The sums are to be multiplied by the exponential of this: (batch, heads, 1, 1).
            It is the same in a sum of values and in its divisor.
    """

    sums: Any
    log_scale: Any

    def with_others(self, other: "KeySums", have_scales: bool) -> "KeySums":
        """The sums over the keys of both.

        Args:
            other: Sums over other keys.
            have_scales: Whether keys have scales, which may differ.

        Returns:
            The sums.
        """
        if not have_scales:
            return KeySums(self.sums + other.sums, other.log_scale)
        highest = ops.maximum(self.log_scale, other.log_scale)
        sums = self.sums * ops.exp(self.log_scale - highest)
        sums = sums + other.sums * ops.exp(other.log_scale - highest)
        return KeySums(sums, highest)


def sums_of_keys(
    key: Features, value: Tensor, key_mask: Tensor = None, turn_key: Callable | None = None
) -> KeySums:
    """Sums keys and values up for all queries.

    Args:
        key: Positive features of the keys, float32 or wider.
        value: Float tensor (batch, heads, source, value_dim).
        key_mask: Boolean tensor that broadcasts to (batch, heads, source), or None.
        turn_key: Turns φ(key) where it is multiplied by values, or None.

    Returns:
        The sums.
    """
    numbers, log_scale = key.seen(key_mask)
    values = _with_ones(ops.cast(value, numbers.dtype))
    if log_scale is None:
        highest = ops.zeros((*ops.shape(values)[:2], 1, 1), numbers.dtype)
    else:
        highest = ops.max(log_scale, axis=2, keepdims=True, initial=NO_SCALE)
        numbers = numbers * ops.exp(log_scale - highest)
    if turn_key is None:
        return KeySums(ops.matmul(ops.swapaxes(numbers, -1, -2), values), highest)
    turned = ops.matmul(ops.swapaxes(turn_key(numbers), -1, -2), _split_last(values)[0])
    of_ones = ops.expand_dims(ops.sum(numbers, axis=2), -1)
    return KeySums(ops.concatenate([turned, of_ones], axis=-1), highest)


def attend_sums(query: Tensor, sums: Tensor, turn_query: Callable | None = None) -> Tensor:
    """Attends to what `sums_of_keys` summed up.

    Args:
        query: Positive features of the queries (batch, heads, target, features).
        sums: Float tensor (batch, heads, features, value_dim + 1).
        turn_query: Turns φ(query) where it is multiplied by sums of values, or None.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `sums`.
    """
    if turn_query is None:
        return _quotient(ops.matmul(query, sums))
    of_values, of_ones = _split_last(sums)
    products = [ops.matmul(turn_query(query), of_values), ops.matmul(query, of_ones)]
    return _quotient(ops.concatenate(products, axis=-1))


class LinearState(NamedTuple):
    """What is kept of the positions so far.

    Attributes:
        sums: The sums over the keys, a `KeySums`.
        start: int32 (batch,), the position at which decoding began, index 0 of the steps.
    """

    sums: Any
    start: Any


def initial_linear_state(
    batch_size: Any, heads: int, features: int, value_dim: int, dtype: str
) -> LinearState:
    """The state before the first position.

    Args:
        batch_size: Number of rows, a number or a scalar int32 tensor.
        heads: Number of heads.
        features: Number of a key's features.
        value_dim: Size of a head's value.
        dtype: Dtype of the layer that attends.

    Returns:
        The state.
    """
    dtype = computing_dtype(dtype)
    sums = ops.zeros((batch_size, heads, features, value_dim + 1), dtype)
    log_scale = ops.zeros((batch_size, heads, 1, 1), dtype) + NO_SCALE
    return LinearState(KeySums(sums, log_scale), ops.zeros((batch_size,), dtype="int32"))


def linear_attention_step(
    query: Tensor, key: Features, value: Tensor, state: LinearState, turn: Callable | None = None
) -> tuple:
    """One position of causal linear attention.

    Args:
        query: Positive features (batch, heads, 1, features).
        key: Positive features of the same shape.
        value: Float tensor (batch, heads, 1, value_dim).
        state: The state of the positions before.
        turn: Turns features by this position, or None.

    Returns:
        The context (batch, heads, 1, value_dim) and the state with this position.
    """
    sums = sums_of_keys(key, value, turn_key=turn)
    sums = state.sums.with_others(sums, key.log_scale is not None)
    context = ops.cast(attend_sums(query, sums.sums, turn), value.dtype)
    return context, LinearState(sums, state.start)


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1, which is positive, in float32 or wider."""
    return ops.elu(ops.cast(x, computing_dtype(x.dtype))) + 1.0


def _with_ones(values: Any) -> Any:
    """Values with one more column of 1, whose sums are the divisors."""
    return ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)


def _quotient(sums: Any) -> Any:
    """Sums of values divided by their last column; 0 where that is 0."""
    sums, divisor = _split_last(sums)
    some = ops.greater(divisor, 0)
    return ops.where(some, sums / ops.where(some, divisor, 1.0), 0.0)


def _split_last(x: Tensor) -> tuple[Any, Any]:
    """All columns but the last, and the last."""
    width = ops.shape(x)[-1] - 1
    return part(x, -1, 0, width), part(x, -1, width, 1)
