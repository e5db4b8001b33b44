"""Number of steps that a decoding state has room for."""

import numbers
from typing import Any

import numpy as np
from keras import ops

from keras_attn.ops.masks import combine_masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require


def room(*limits: int | None) -> Any:
    """Describes a number of steps by a shape, so that it stays known while a graph is traced.

    Args:
        *limits: Numbers of steps, `None` where there is no limit.

    Returns:
        int32 (steps,) for the smallest limit, or `None` if there is none.
    """
    known = [limit for limit in limits if limit is not None]
    return ops.arange(max(min(known), 0), dtype="int32") if known else None


def require_room(room: Any, max_length: Any) -> None:
    """Raises if a search is longer than its state, as far as both are known.

    Args:
        room: The state's room, see `room`.
        max_length: Number of steps of the search, an integer or a scalar integer tensor.

    Raises:
        UserError: The search is longer.
    """
    steps = _greatest(max_length)
    require(
        room is None or steps is None or steps <= room.shape[0],
        "The state must have room for all tokens of the search; pass its `max_length` to `prefill` "
        "or `initial_state`.",
        max_length=steps,
        room=None if room is None else room.shape[0],
    )


def within_room(index: Any, limit: int) -> Any:
    """Finds steps that go beyond a limit: an error where they are known, else a mask.

    Args:
        index: int32, the step's index: a scalar, or one for each row (rows,).
        limit: Number of steps.

    Returns:
        `None` where all steps are known to lie within the limit, otherwise boolean (1 or rows, 1).

    Raises:
        UserError: A step is known, not traced, and lies beyond the limit.
    """
    greatest = _greatest(index)
    if greatest is None:
        return ops.reshape(ops.cast(index, "int32"), (-1, 1)) < limit
    require(
        greatest < limit,
        "Decoding must not go beyond the state's room.",
        index=greatest,
        room=limit,
    )
    return None


def nan_beyond(vectors: Tensor, *within: Any) -> Tensor:
    """Replaces vectors by NaN where a step went beyond its room.

    Args:
        vectors: Float tensor (rows, features).
        *within: What `within_room` returned.

    Returns:
        A tensor of the shape of `vectors`.
    """
    within = combine_masks(*within)
    return vectors if within is None else ops.where(within, vectors, np.nan)


def _greatest(numbers_or_tensor: Any) -> int | None:
    """The greatest of some integers, `None` while a graph is traced that will know it."""
    if isinstance(numbers_or_tensor, numbers.Integral):
        return int(numbers_or_tensor)
    try:
        return int(np.max(ops.convert_to_numpy(numbers_or_tensor)))
    except (TypeError, NotImplementedError):
        return None
