"""Attention inside windows with gaps, which are wider at the same cost."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.local_attention import GlobalKeys, local_attention
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor


def dilated_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    dilations: Sequence[int],
    key_mask: Tensor,
    global_keys: GlobalKeys | None = None,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes `local_attention` among every `dilation`-th position, for each head with its own.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        window: How many places away the nearest key is that is not attended to; places are
            `dilation` positions apart.
        dilations: The dilation of each head.
        key_mask: Boolean tensor (batch, heads or 1, length), True where a key may be attended to.
        global_keys: Further keys of all heads, which all queries attend to in the same softmax.
        dropout: Fraction of probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `query`: 0 where a query has
        nothing to attend to.

    Reference:
        Beltagy et al., 2020, https://arxiv.org/abs/2004.05150, section 3.1.
    """
    if len(set(dilations)) > 1:
        key_mask = ops.broadcast_to(key_mask, ops.shape(key)[:3])
    contexts, start = [], 0
    for count, dilation in _runs(dilations):
        heads = [part(x, 1, start, count) for x in (query, key, value)]
        of_heads = part(key_mask, 1, start, count) if key_mask.shape[1] != 1 else key_mask
        theirs = global_keys
        if theirs is not None:
            theirs = GlobalKeys(
                part(theirs.key, 1, start, count),
                part(theirs.value, 1, start, count),
                theirs.mask if theirs.mask.shape[1] == 1 else part(theirs.mask, 1, start, count),
            )
        contexts.append(_dilated(*heads, window, dilation, of_heads, theirs, dropout, seed))
        start += count
    return contexts[0] if len(contexts) == 1 else ops.concatenate(contexts, axis=1)


def _runs(dilations: Sequence[int]) -> list[tuple[int, int]]:
    """How many heads side by side have which dilation."""
    runs: list[tuple[int, int]] = []
    for dilation in dilations:
        if runs and runs[-1][1] == dilation:
            runs[-1] = (runs[-1][0] + 1, dilation)
        else:
            runs.append((1, dilation))
    return runs


def _dilated(query, key, value, window, dilation, key_mask, global_keys, *dropping) -> Any:
    if dilation == 1:
        return local_attention(
            query, key, value, window, key_mask, None, False, *dropping, global_keys
        )
    batch, _, length, _ = ops.shape(query)
    cut = Cut(length, (length + dilation - 1) // dilation, dilation)

    def apart(x: Tensor) -> Any:
        """(batch, heads, length, width) to (batch * dilation, heads, places, width)."""
        _, heads, _, width = ops.shape(x)
        places = ops.transpose(cut.blocks(x), (0, 3, 1, 2, 4))
        return ops.reshape(places, (batch * dilation, heads, cut.count, width))

    mask = apart(ops.expand_dims(ops.broadcast_to(key_mask, (batch, *ops.shape(key_mask)[1:])), -1))
    if global_keys is not None:
        whole = (ops.broadcast_to(x, (batch, *ops.shape(x)[1:])) for x in global_keys[:3])
        global_keys = GlobalKeys(*(ops.repeat(x, dilation, axis=0) for x in whole))
    context = local_attention(
        *(apart(x) for x in (query, key, value)),
        window,
        mask[..., 0],
        None,
        False,
        *dropping,
        global_keys,
    )
    _, heads, _, width = ops.shape(context)
    context = ops.reshape(context, (batch, dilation, heads, cut.count, width))
    return cut.whole(ops.transpose(context, (0, 2, 3, 1, 4)))
