"""Attention inside a window, in time and memory linear in the length."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype, dot_product_attention
from keras_attn.ops.blocks import Cut
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.positions import relative_shift
from keras_attn.ops.softmax import MASKED_SCORE, softmax

# Shorter blocks than this make more overhead than they save.
_SMALLEST_BLOCK = 16


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
    block before and, unless causal, the one after. No matrix over all pairs is built.

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
    query_dtype, dtype = query.dtype, computing_dtype(query.dtype)
    size = block_size(window)
    length = ops.shape(query)[2]
    cut = Cut(length, (length + size - 1) // size, size)
    query = ops.cast(query, dtype) * query.shape[-1] ** -0.5
    keys = _windows(cut.blocks(ops.cast(key, dtype)), is_causal)
    values = _windows(cut.blocks(value), is_causal)
    # (batch, heads, count, size, keys)
    scores = ops.matmul(cut.blocks(query), ops.swapaxes(keys, -1, -2))
    if bias is not None:
        scores += _bias_of_blocks(ops.cast(bias, dtype), cut, window, is_causal)
    if key_mask is None:
        key_mask = ops.ones((1, 1, length), dtype="bool")
    real = _windows(cut.blocks(ops.cast(key_mask, "bool")[..., None]), is_causal)
    mask = combine_masks(ops.swapaxes(real, -1, -2), _near(window, size, is_causal))
    scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, dtype))
    attends = ops.any(mask, axis=-1, keepdims=True)
    near = scores.shape[-1]
    if global_keys is not None:
        far, attends_far = _global_scores(query, global_keys, cut)
        scores = ops.concatenate([scores, far], axis=-1)
        attends = ops.logical_or(attends, attends_far)
    probabilities = softmax(scores)
    if dropout:
        probabilities = drop_out(probabilities, dropout, seed)
    probabilities = ops.cast(probabilities, value.dtype)
    context = ops.matmul(probabilities[..., :near], values)
    batch, heads, count, _, width = ops.shape(context)
    if global_keys is not None:
        rows = (batch, heads, count * size)
        far = ops.reshape(probabilities[..., near:], (*rows, ops.shape(far)[-1]))
        far = ops.matmul(far, ops.cast(global_keys.value, value.dtype))
        context += ops.reshape(far, (batch, heads, count, size, width))
    context = ops.where(attends, context, ops.zeros((), context.dtype))
    context = ops.reshape(context, (batch, heads, count * size, width))
    return ops.cast(context[:, :, :length], query_dtype)


class WindowState(NamedTuple):
    """The last keys (batch, heads, window, key_dim) and values (batch, heads, window, value_dim).

    They stand at the end; before them, while there are fewer than the window holds, whatever.

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


def window_state(key: Any, value: Any, window: int, real: Any) -> WindowState:
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
    last = start[:, None] - window + ops.arange(window, dtype="int32")  # (batch, window)
    last = ops.maximum(last, 0)[:, None, :, None]
    return WindowState(*(ops.take_along_axis(x, last, axis=2) for x in (key, value)), start)


def local_attention_step(
    query: Any, key: Any, value: Any, state: WindowState, position: Any, bias: Any = None
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
        mask=filled[:, None, None],
        bias=bias,
        implementation="dense",
        every_query_attends=True,
    )
    return context, state


def _windows(blocks: Any, is_causal: bool) -> Any:
    """Each block behind the one before and, unless causal, in front of the one after."""
    empty = ops.zeros_like(blocks[:, :, :1])
    parts = [ops.concatenate([empty, blocks[:, :, :-1]], axis=2), blocks]
    if not is_causal:
        parts.append(ops.concatenate([blocks[:, :, 1:], empty], axis=2))
    return ops.concatenate(parts, axis=3)


def _near(window: int, size: int, is_causal: bool) -> Any:
    """Which keys of a block's window each of its queries reaches, (size, keys)."""
    at_query = ops.arange(size, dtype="int32") + size
    at_key = ops.arange((2 if is_causal else 3) * size, dtype="int32")
    distances = at_key[None, :] - at_query[:, None]
    near = ops.less(ops.abs(distances), window)
    return ops.logical_and(near, ops.less_equal(distances, 0)) if is_causal else near


def _bias_of_blocks(bias: Any, cut: Cut, window: int, is_causal: bool) -> Any:
    """A bias by distance as one by block: (batch or 1, heads, count or 1, size, keys)."""
    size, blocks = cut.size, 2 if is_causal else 3
    if is_causal:
        bias = bias[..., :window]  # distances up to 0
    batch, heads, _, columns = ops.shape(bias)
    # Of the distances that a block's window has those farther away are masked whatever they get.
    before = 2 * size - window
    after = (blocks + 1) * size - 1 - before - columns
    bias = ops.pad(bias, ((0, 0), (0, 0), (0, 0), (before, after)))
    if bias.shape[2] == 1:
        bias = ops.broadcast_to(bias, (batch, heads, size, bias.shape[3]))
        return relative_shift(bias, blocks * size)[:, :, None]
    blocked = ops.reshape(cut.blocks(bias), (batch, heads * cut.count, size, bias.shape[3]))
    shifted = relative_shift(blocked, blocks * size)
    return ops.reshape(shifted, (batch, heads, cut.count, size, blocks * size))


def _global_scores(query: Any, keys: GlobalKeys, cut: Cut) -> tuple:
    """Masked scores of scaled queries and global keys, and which queries attend to any.

    Returns:
        Tensor (batch, heads, count, size, keys), and boolean (batch, heads, count, size, 1).
    """
    scores = ops.matmul(query, ops.swapaxes(ops.cast(keys.key, query.dtype), -1, -2))
    if keys.bias is not None:
        scores += ops.cast(keys.bias, query.dtype)
    mask = ops.ones((1, 1, 1, 1), dtype="bool") if keys.mask is None else keys.mask
    mask = ops.broadcast_to(ops.cast(mask, "bool"), ops.shape(scores))
    scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, scores.dtype))
    return cut.blocks(scores), cut.blocks(ops.any(mask, axis=-1, keepdims=True))
