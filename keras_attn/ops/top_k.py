"""The largest of many: what a search asks of its logits."""

import math
from typing import Any

import keras
from keras import ops

_FEW = 256  # columns, from which on blocks pay


def top_k(values: Any, k: int) -> tuple[Any, Any]:
    """Finds the `k` largest values of each row, largest first; of equal ones the leftmost.

    As `keras.ops.top_k`, which asks of every value whether it is among the best so far. Here only
    those blocks of a row are asked that hold its best: the `k` blocks of the largest maxima.

    Args:
        values: Float tensor (rows, columns), its number of columns known.
        k: How many, at most the number of columns.

    Returns:
        The values (rows, k) and their columns int32 (rows, k); of a row with NaN any.
    """
    columns = values.shape[1]
    block = _block_size(columns, k)
    blocks = -(-columns // block)
    if columns < _FEW or blocks <= k:
        found, places = leftmost_top_k(values, k)
        return found, ops.cast(places, "int32")
    rows = ops.arange(ops.shape(values)[0], dtype="int32")[:, None]
    values = ops.pad(values, ((0, 0), (0, blocks * block - columns)), constant_values=-math.inf)
    values = ops.reshape(values, (-1, blocks, block))
    _, best = leftmost_top_k(ops.max(values, axis=-1), k)
    # In their order within the row, for the leftmost of equal values to stay that.
    best = ops.sort(ops.cast(best, "int32"), axis=-1)  # (rows, k)
    candidates = ops.take(ops.reshape(values, (-1, block)), best + rows * blocks, axis=0)
    found, places = leftmost_top_k(ops.reshape(candidates, (-1, k * block)), k)
    places = ops.cast(places, "int32")
    best = ops.take(ops.reshape(best, (-1,)), places // block + rows * k)
    # With NaN among them, what is padded may seem to be the best.
    return found, ops.minimum(best * block + places % block, columns - 1)


def leftmost_top_k(values: Any, k: int) -> tuple[Any, Any]:
    """`keras.ops.top_k`, of equal values the leftmost on torch too, which takes any.

    Args:
        values: Float tensor (rows, columns).
        k: How many, at most the number of columns.

    Returns:
        The values (rows, k) and their columns (rows, k).
    """
    if keras.backend.backend() != "torch":
        return ops.top_k(values, k)
    if k == 1:
        places = ops.argmax(values, axis=-1, keepdims=True)
    else:
        places = ops.argsort(-values, axis=-1)[:, :k]
    return ops.take_along_axis(values, places, axis=-1), places


def _block_size(columns: int, k: int) -> int:
    """A power of two, for about as many blocks as there are values in the `k` best of them."""
    return 2 ** round(math.log2(max(columns / k, 1)) / 2)
