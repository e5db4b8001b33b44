"""A memory that corrects what it holds for a key, block by block: the delta rule."""

from typing import Any

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.linear import identity
from keras_attn.ops.masks import causal_mask
from keras_attn.ops.running_sums import states_of_blocks
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor

_BLOCK = 64


def delta_rule(query: Tensor, key: Tensor, value: Tensor, rate: Tensor) -> tuple[Any, Any]:
    """Reads S_i = S_{i-1} + rate_i key_iᵀ (value_i - key_i S_{i-1}) by query_i at each position.

    Time and memory are linear in the length: inside a block the corrections are the solution of a
    triangular system.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim), of length 1 or 0 each.
        value: Float tensor (batch, heads, length, value_dim).
        rate: Float tensor (batch, heads, length, 1) in [0, 1]: 0 leaves the memory as it is, 1
            replaces what it holds for a key.

    Returns:
        The context (batch, heads, length, value_dim) and the memory after the last position
        (batch, heads, key_dim, value_dim), float32 or wider.

    References:
        Schlag et al., 2021, https://arxiv.org/abs/2102.11174, equations 22 to 24.
        Yang et al., 2024, https://arxiv.org/abs/2406.06484, equations 7 to 11 (blocks).
    """
    dtype = computing_dtype(query.dtype)
    cut = Cut.of(ops.shape(query)[2], _BLOCK)
    query, key, value, rate = (cut.blocks(ops.cast(x, dtype)) for x in (query, key, value, rate))
    turned_keys = ops.swapaxes(key, -1, -2)
    until = causal_mask(cut.size, cut.size)
    before = ops.logical_and(until, ops.logical_not(ops.transpose(until)))
    # (batch, heads, count, size, size)
    corrections = ops.where(before, ops.matmul(key * rate, turned_keys), 0.0)
    system = corrections + identity(cut.size, dtype)
    found = ops.solve_triangular(
        system, ops.concatenate([value * rate, key * rate], axis=-1), lower=True
    )
    width = value.shape[-1]
    new, of_old = part(found, -1, 0, width), part(found, -1, width, key.shape[-1])

    def following(state: Any, block: Any) -> Any:
        added = part(block, -1, 0, width)
        return state + added - ops.matmul(part(block, -1, width, key.shape[-1]), state)

    # (batch, heads, count, key_dim, value_dim + key_dim)
    blocks = ops.matmul(turned_keys, found)
    states, last = states_of_blocks(following, blocks, width)
    if states is not None:
        new = new - ops.matmul(of_old, states)
    scores = ops.where(until, ops.matmul(query, turned_keys), 0.0)
    context = ops.matmul(scores, new)
    if states is not None:
        context = context + ops.matmul(query, states)
    return cut.whole(context), last


def delta_rule_step(query: Tensor, key: Tensor, value: Tensor, rate: Tensor, memory: Any) -> tuple:
    """One position of `delta_rule`.

    Args:
        query: Float tensor (batch, heads, 1, key_dim).
        key: Float tensor (batch, heads, 1, key_dim).
        value: Float tensor (batch, heads, 1, value_dim).
        rate: Float tensor (batch, heads, 1, 1).
        memory: The memory of the positions before, (batch, heads, key_dim, value_dim).

    Returns:
        The context (batch, heads, 1, value_dim) and the memory with this position.
    """
    query, key, value, rate = (ops.cast(x, memory.dtype) for x in (query, key, value, rate))
    correction = rate * (value - ops.matmul(key, memory))
    memory = memory + ops.matmul(ops.swapaxes(key, -1, -2), correction)
    return ops.matmul(query, memory), memory
