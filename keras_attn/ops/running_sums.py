"""Sums over the keys up to each query, that may decay on the way, block by block."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.masks import causal_mask
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor

NO_SCALE = -1e30
"""Logarithm of a scale below all others; the difference of two such ones is finite."""

STRONGEST_DECAY = -2.5
"""Least logarithm of a decay of single features that one position may make.

Over a block it is -80, whose exponential and its inverse are float32 numbers.
"""

_BLOCK = 128
_BLOCK_OF_VECTORS = 32


def running_sums(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_scale: Tensor = None,
    log_decay: Tensor = None,
) -> tuple[Any, Any]:
    """Computes Σ (query_i · key_j) value_j over the keys j up to each query i.

    With `log_scale` the sums of query i are divided by the greatest scale of a key so far, which
    keeps them finite. With `log_decay` what was summed up before a key is multiplied by its decay
    before the key is added. Time and memory are linear in the length.

    Args:
        query: Float tensor (batch, heads, target, features).
        key: Float tensor (batch, heads, source, features). The last query is at the last key.
        value: Float tensor (batch, heads, source, value_dim).
        log_scale: Logarithms of factors of the keys, (batch, heads, source, 1). Gradients do not
            pass through them.
        log_decay: Logarithms of decays, not above 0: (batch, heads, source, features), for each
            feature one and none below `STRONGEST_DECAY`, or (batch, heads, source, 1).

    Returns:
        The sums (batch, heads, target, value_dim), and the state after the last key,
        Σ key_jᵀ value_j (batch, heads, features, value_dim).

    Reference:
        Yang et al., 2023, https://arxiv.org/abs/2312.06635, section 3 (blocks) and equation 3
        (decays).
    """
    target, source = ops.shape(query)[2], ops.shape(key)[2]
    # The last query is at the last key: the shorter side is filled up at its front.
    query = _lengthened(query, target, source)
    key, value = (_lengthened(x, source, target) for x in (key, value))
    of_vectors = log_decay is not None and log_decay.shape[-1] != 1
    cut = Cut.of(ops.shape(query)[2], _BLOCK_OF_VECTORS if of_vectors else _BLOCK)
    query, key, value = (cut.blocks(x) for x in (query, key, value))
    totals = None
    if log_scale is not None:
        given = (log_scale, ops.ones_like(log_scale))
        log_scale, is_key = (cut.blocks(_lengthened(x, source, target)) for x in given)
        totals, factors = _Totals.of_scales(ops.where(is_key > 0, log_scale, NO_SCALE), cut)
        key = key * factors
    elif log_decay is not None:
        totals = _Totals.of_decays(cut.blocks(_lengthened(log_decay, source, target)))
    if totals is None:
        scores, until_end = _products(query, key), key
    elif of_vectors:
        # Relative to the start of the block: nothing depends on what follows.
        scores = _products(query * ops.exp(totals.here), key * ops.exp(-totals.here))
        until_end = key * ops.exp(totals.end() - totals.here)
    else:
        scores = _products(query, key) * ops.exp(totals.between())
        until_end = key * ops.exp(totals.end() - totals.here)
    # (batch, heads, count, size, size)
    scores = ops.where(causal_mask(cut.size, cut.size), scores, 0.0)
    sums = ops.matmul(scores, value)
    of_blocks = ops.matmul(ops.swapaxes(until_end, -1, -2), value)
    before, last = _states(of_blocks, None if totals is None else totals.over_blocks())
    if before is not None:
        if totals is not None:
            query = query * ops.exp(totals.here - totals.start)
        sums = sums + ops.matmul(query, before)
    return part(cut.whole(sums), 2, cut.length - target, target), last


class _Totals(NamedTuple):
    """Logarithms of what has decayed, whose differences are the decays between positions.

    Attributes:
        here: At each position, (batch, heads, count, size, features or 1).
        start: Before each block, (batch, heads, count, 1, features or 1).
    """

    here: Any
    start: Any

    @classmethod
    def of_decays(cls, log_decay: Tensor) -> "_Totals":
        """Decays of positions, counted in each block on its own so that they remain exact."""
        here = ops.cumsum(log_decay, axis=3)
        return cls(here, ops.zeros_like(here[:, :, :, :1]))

    @classmethod
    def of_scales(cls, log_scale: Tensor, cut: Cut) -> tuple["_Totals", Any]:
        """Decays by which the greatest scale so far stays 1, and the factors of the keys."""
        in_block = _greatest_so_far(log_scale, cut.size)
        # (batch, heads, count, 1, 1)
        of_blocks = _greatest_so_far(part(in_block, 3, cut.size - 1, 1)[..., 0], cut.count)
        of_blocks = ops.expand_dims(of_blocks, -1)
        before = ops.concatenate([ops.full_like(of_blocks[:, :, :1], NO_SCALE), of_blocks], axis=2)
        before = part(before, 2, 0, cut.count)
        highest = ops.stop_gradient(ops.maximum(in_block, before))
        return cls(-highest, -before), ops.exp(log_scale - highest)

    def end(self) -> Any:
        return part(self.here, 3, ops.shape(self.here)[3] - 1, 1)

    def between(self) -> Any:
        """From keys to later queries of the block, (batch, heads, count, size, size)."""
        return ops.minimum(self.here - ops.swapaxes(self.here, -1, -2), 0.0)

    def over_blocks(self) -> Any:
        """Decays of the states by each block, (batch, heads, count, features or 1, 1)."""
        return ops.exp(ops.swapaxes(self.end() - self.start, -1, -2))


def _products(query: Tensor, key: Tensor) -> Any:
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def _greatest_so_far(x: Tensor, length: Any) -> Any:
    """Greatest numbers of (…, length, 1) up to each position."""
    seen = ops.where(causal_mask(length, length), ops.swapaxes(x, -1, -2), NO_SCALE)
    return ops.max(seen, axis=-1, keepdims=True, initial=NO_SCALE)


def _states(of_blocks: Any, decays: Any) -> tuple[Any, Any]:
    """The states before each block, `None` where one block is known to be all, and the last one.

    Args:
        of_blocks: What each block adds, (batch, heads, count, features, value_dim).
        decays: What the state before is multiplied by, (batch, heads, count, features or 1, 1), or
            `None`.
    """
    if of_blocks.shape[2] == 1:
        return None, of_blocks[:, :, 0]
    if decays is None:
        after = ops.cumsum(of_blocks, axis=2)
        before = ops.concatenate([ops.zeros_like(after[:, :, :1]), after], axis=2)
        count = ops.shape(after)[2]
        return part(before, 2, 0, count), part(after, 2, count - 1, 1)[:, :, 0]
    width = of_blocks.shape[-1]

    def following(state: Any, block: Any) -> Any:
        return state * part(block, -1, width, 1) + part(block, -1, 0, width)

    decays = ops.broadcast_to(decays, (*ops.shape(of_blocks)[:-1], 1))
    blocks = ops.concatenate([of_blocks, decays], axis=-1)
    return states_of_blocks(following, blocks, width)


def states_of_blocks(following: Callable, blocks: Tensor, width: int) -> tuple[Any, Any]:
    """Computes a state from block to block, 0 before the first.

    Args:
        following: Takes the state (batch, heads, features, width) before a block and what the block
            has (batch, heads, features, any width); returns the state after it.
        blocks: Tensor (batch, heads, count, features, any width).
        width: Width of the state.

    Returns:
        The states before each block (batch, heads, count, features, width), `None` where one block
        is known to be all, and the state after the last one (batch, heads, features, width).
    """
    nothing = ops.zeros_like(part(blocks[:, :, 0], -1, 0, width))
    if blocks.shape[2] == 1:
        return None, following(nothing, blocks[:, :, 0])

    def visit(state: Any, block: Any) -> tuple[Any, Any]:
        return following(state, block), state

    # A single tensor: Keras' scan on TensorFlow takes several only of known lengths.
    last, before = ops.scan(visit, nothing, ops.moveaxis(blocks, 2, 0))
    return ops.moveaxis(before, 0, 2), last


def _lengthened(x: Tensor, length: Any, other: Any) -> Tensor:
    """Zeros in front of (batch, heads, length, width) up to the other length, if that is larger."""
    # Under JAX's jit an operation would make an unknown number of known ones.
    known = isinstance(length, int) and isinstance(other, int)
    missing = max(other - length, 0) if known else ops.maximum(other - length, 0)
    if known and not missing:
        return x
    batch, heads, _, width = ops.shape(x)
    return ops.concatenate([ops.zeros((batch, heads, missing, width), x.dtype), x], axis=2)
