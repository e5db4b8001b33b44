"""Causal attention inside a window one position after the other."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops.attention import dot_product_attention
from keras_attn.tensors import Tensor


class WindowState(NamedTuple):
    """The last keys (batch, heads, window, key_dim) and values (batch, heads, window, value_dim).

    They are at the end; while there are fewer than the window holds, anything is before them.

    Attributes:
        key: The keys.
        value: The values.
        start: int32 (batch,), the position at which decoding began, index 0 of the steps.
    """

    key: Any
    value: Any
    start: Any


def initial_window_state(
    batch_size: Any, heads: int, window: int, widths: tuple[int, int], dtype: str
) -> WindowState:
    """The state before the first position.

    Args:
        batch_size: Number of rows, a number or a scalar int32 tensor.
        heads: Number of heads.
        window: How many positions away the nearest key is that is not attended to.
        widths: Sizes of a head's key and value.
        dtype: Dtype of both.

    Returns:
        The state.
    """
    key, value = (ops.zeros((batch_size, heads, window, n), dtype) for n in widths)
    return WindowState(key, value, ops.zeros((batch_size,), dtype="int32"))


def window_state(key: Tensor, value: Tensor, window: int, real: Tensor) -> WindowState:
    """The state after a prompt.

    Args:
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        window: How many positions away the nearest key is that is not attended to.
        real: Boolean (batch, length), which positions count: the first ones of each sequence.

    Returns:
        The state.
    """
    start = ops.sum(ops.cast(real, "int32"), axis=1)
    last = ops.expand_dims(start, 1) - window + ops.arange(window, dtype="int32")  # (batch, window)
    last = ops.expand_dims(ops.maximum(last, 0), (1, 3))
    if key.shape[2] == 0:  # something to take, which counts for nothing
        key, value = (ops.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0))) for x in (key, value))
    return WindowState(*(ops.take_along_axis(x, last, axis=2) for x in (key, value)), start)


def local_attention_step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: WindowState,
    position: Any,
    bias: Tensor = None,
) -> tuple[Any, WindowState]:
    """One position of causal attention inside a window.

    Args:
        query: Float tensor (batch, heads, 1, key_dim).
        key: Float tensor (batch, heads, 1, key_dim).
        value: Float tensor (batch, heads, 1, value_dim).
        state: The state of the positions before.
        position: int32 (1, 1) or (batch, 1), the position.
        bias: Float tensor (1, heads, 1, window), added to the scaled scores.

    Returns:
        The context (batch, heads, 1, value_dim) and the state with this position.
    """
    state = state._replace(
        key=ops.concatenate([state.key[:, :, 1:], key], axis=2),
        value=ops.concatenate([state.value[:, :, 1:], value], axis=2),
    )
    window = state.key.shape[2]
    filled = ops.arange(window, dtype="int32") >= window - 1 - position  # (1 or batch, window)
    context = dot_product_attention(
        query,
        state.key,
        state.value,
        mask=ops.expand_dims(filled, (1, 2)),
        bias=bias,
        implementation="dense",
        every_query_attends=True,
    )
    return context, state
