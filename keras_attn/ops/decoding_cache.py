"""What self-attention remembers of the positions decoded so far.

Keys and values are held as (batch, heads, slots, width), the hypotheses of one source side by
side: slot `position * beams + beam`. Nothing in them is ever reordered. Which slots a hypothesis
may attend to follows from its ancestors: the beam at which it, or the hypothesis that it grew out
of, stood at each position. So a beam search moves a few integers a step, not all keys and values.

On TensorFlow without XLA a cache that grows costs least: steps attend to no empty slots, and
nothing is written but what is new and a copy. JAX and XLA need a fixed length, and write in place.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.validation import require


class GrowingCache(NamedTuple):
    """Keys (batch, heads, slots, key_dim) and values (batch, heads, slots, value_dim)."""

    key: Any
    value: Any

    def append(self, key: Any, value: Any, index: Any) -> "GrowingCache":
        """The cache with one more position; key and value are (batch, heads, beams, width)."""
        return GrowingCache(
            ops.concatenate([self.key, key], axis=2), ops.concatenate([self.value, value], axis=2)
        )


class FixedCache(NamedTuple):
    """Keys (batch, heads, slots, key_dim) and values (batch, heads, slots, value_dim)."""

    key: Any
    value: Any

    def append(self, key: Any, value: Any, index: Any) -> "FixedCache":
        """The cache with position `index` filled; key and value are (batch, heads, beams, width).

        Args:
            key: The keys of the position.
            value: The values of the position.
            index: int32, a scalar, or with one beam one for each row (batch,).
        """
        return FixedCache(filled(self.key, key, index), filled(self.value, value, index))


def initial_cache(
    batch_size: Any,
    heads: int,
    widths: tuple[int, int],
    dtype: str,
    max_length: int | None = None,
    beams: int = 1,
) -> FixedCache | GrowingCache:
    """Makes an empty cache.

    Args:
        batch_size: Number of sources, a number or a scalar int32 tensor.
        heads: Number of key and value heads.
        widths: Sizes of a head's key and value.
        dtype: Dtype of both.
        max_length: Number of positions of a cache of a fixed length; `None` for one that grows.
        beams: Number of hypotheses of each source.

    Returns:
        The cache.

    Raises:
        UserError: A growing cache is asked for on another backend than TensorFlow.
    """
    if max_length is not None:
        slots = max_length * beams
        return FixedCache(*(ops.zeros((batch_size, heads, slots, n), dtype) for n in widths))
    _require_growth()
    none = _no_slots()
    return GrowingCache(*(ops.zeros((batch_size, heads, none, n), dtype) for n in widths))


def is_shared(cache: Any) -> bool:
    """Whether a cache holds the positions of all hypotheses of a source, which are not reordered.

    Others are a hypothesis' own: they have one row for each, and follow it.
    """
    return isinstance(cache, FixedCache | GrowingCache)


def initial_ancestors(batch_size: Any, max_length: int | None = None) -> Any:
    """Makes the ancestors of hypotheses with no position yet.

    Args:
        batch_size: Number of sources, a number or a scalar int32 tensor.
        max_length: Number of positions of the caches, or `None` where they grow.

    Returns:
        int32 (batch, max_length) of -1, or (batch, 0).
    """
    if max_length is not None:
        return ops.full((batch_size, max_length), -1, dtype="int32")
    _require_growth()
    return ops.zeros((batch_size, _no_slots()), dtype="int32")


def extend_ancestors(ancestors: Any, beams: int, index: Any, growing: bool) -> Any:
    """Adds position `index`, at which every hypothesis stands at its own beam.

    Args:
        ancestors: int32 (rows, positions), the hypotheses of one source standing together.
        beams: Number of hypotheses of each source.
        index: int32, a scalar or one for each row (rows,); not used where `growing`.
        growing: Whether the caches grow.

    Returns:
        int32 (rows, positions), with one more position where `growing`.
    """
    rows, length = ops.shape(ancestors)
    own = ops.reshape(ops.arange(rows, dtype="int32") % beams, (-1, 1))  # (rows, 1)
    if growing:
        return ops.concatenate([ancestors, own], axis=1)
    index = ops.reshape(ops.convert_to_tensor(index, dtype="int32"), (-1, 1))  # (1 or rows, 1)
    here = ops.equal(ops.arange(length, dtype="int32"), index)
    return ops.where(here, own, ancestors)


def ancestor_mask(ancestors: Any, beams: int) -> Any:
    """Lets a hypothesis attend to its ancestors alone.

    Args:
        ancestors: int32 (rows, positions), -1 at positions that lie ahead.
        beams: Number of hypotheses of each source.

    Returns:
        Boolean (rows / beams, 1, beams, positions * beams), True at a hypothesis' ancestors.
    """
    slots = ops.arange(beams, dtype="int32")
    is_ancestor = ops.equal(ops.expand_dims(ancestors, -1), slots)  # (rows, positions, beams)
    length = ops.shape(ancestors)[1]
    return ops.reshape(is_ancestor, (-1, 1, beams, length * beams))


def visible_slots(
    cache: FixedCache | GrowingCache,
    position: Any,
    beams: int,
    ancestor_mask: Any = None,
    window: int | None = None,
) -> tuple:
    """Masks of what a step may attend to.

    Args:
        cache: The cache, the new position added.
        position: int32 (1 or batch, 1), the new position.
        beams: Number of hypotheses of each source.
        ancestor_mask: Boolean (batch, 1, beams, slots), or None with one beam.
        window: If given, how many positions away the nearest is that is not attended to.

    Returns:
        Boolean tensors that broadcast to (batch, heads, beams, slots), of which all must allow.
    """
    masks = () if ancestor_mask is None else (ancestor_mask,)
    some_empty = ancestor_mask is None and isinstance(cache, FixedCache)
    if not some_empty and window is None:
        return masks
    positions = slot_positions(cache, beams)
    near = ops.less_equal(positions, position)
    if window is not None:
        near = ops.logical_and(near, ops.greater(positions, position - window))
    return (*masks, near[:, None, None, :])


def slot_positions(cache: FixedCache | GrowingCache, beams: int) -> Any:
    """The position of each slot, int32 (slots,)."""
    return ops.arange(ops.shape(cache.value)[2], dtype="int32") // beams


def filled(cache: Any, new: Any, index: Any) -> Any:
    """Writes a position into slots of a fixed number.

    Args:
        cache: Tensor (batch, heads, slots, width).
        new: Tensor (batch, heads, beams, width).
        index: int32, the position: a scalar, or with one beam one for each row (batch,).

    Returns:
        Tensor of the shape of `cache`.
    """
    index = ops.convert_to_tensor(index, dtype="int32")
    if len(index.shape) == 0:
        return ops.slice_update(cache, (0, 0, index * ops.shape(new)[2], 0), new)
    positions = ops.arange(ops.shape(cache)[2], dtype="int32")
    here = ops.equal(positions, ops.reshape(index, (-1, 1)))  # (batch, length)
    return ops.where(here[:, None, :, None], new, cache)


def _require_growth() -> None:
    require(
        keras.backend.backend() == "tensorflow",
        "Caches that grow need TensorFlow; give a `max_length`.",
        max_length=None,
        backend=keras.backend.backend(),
    )


def _no_slots() -> Any:
    """0, of which only the running graph knows."""
    # A loop's variables may grow only along an axis whose size is not known before it runs.
    zero = ops.convert_to_tensor(0, "int32")
    return ops.while_loop(lambda count: count > 0, lambda count: count - 1, zero)
