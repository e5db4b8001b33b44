"""Caches of self-attention for the positions decoded so far.

Keys and values are held as (batch, heads, slots, width), the hypotheses of one source side by
side: slot `position * beams + beam`. Nothing in them is ever reordered. Which slots a hypothesis
may attend to follows from its ancestors: the beam at which it, or the hypothesis that it grew out
of, was at each position. So a beam search moves a few integers a step, not all keys and values.

On TensorFlow without XLA a cache that grows costs least: steps attend to no empty slots, and
nothing is written but what is new and a copy. JAX and XLA need a fixed length, and write in place.

The positions before the first step, a prompt or a memory, are the past of a `ContinuedCache`: all
hypotheses of a source share its slots.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.tensors import Tensor
from keras_attn.validation import require


class GrowingCache(NamedTuple):
    """Keys (batch, heads, slots, key_dim) and values (batch, heads, slots, value_dim)."""

    key: Any
    value: Any

    def append(self, key: Tensor, value: Tensor, index: Tensor, past: Tensor = 0) -> "GrowingCache":
        """The cache with one more position; key and value are (batch, heads, beams, width)."""
        return GrowingCache(self.added(self.key, key, index), self.added(self.value, value, index))

    def added(self, held: Any, new: Any, index: Any, past: Any = 0) -> Any:
        """What is held slot by slot beside the keys, (batch, heads, slots, width), or `None`."""
        return ops.concatenate([held, new], axis=2)


class FixedCache(NamedTuple):
    """Keys (batch, heads, slots, key_dim) and values (batch, heads, slots, value_dim)."""

    key: Any
    value: Any

    def append(self, key: Tensor, value: Tensor, index: Tensor, past: Tensor = 0) -> "FixedCache":
        """The cache with position `index` filled; key and value are (batch, heads, beams, width).

        Args:
            key: The keys of the position.
            value: The values of the position.
            index: int32, a scalar, or with one beam one for each row (batch,).
            past: Number of slots before those of position 0.
        """
        return FixedCache(
            self.added(self.key, key, index, past), self.added(self.value, value, index, past)
        )

    def added(self, held: Any, new: Any, index: Any, past: Any = 0) -> Any:
        """What is held slot by slot beside the keys, (batch, heads, slots, width), or `None`."""
        return filled(held, new, index, past)


class ContinuedCache(NamedTuple):
    """A cache behind a past with one slot per position for all hypotheses of a source.

    Attributes:
        cache: Keys and values, those of the past in the first slots.
        real: Boolean (batch, past), `False` where the past has nothing.
        start: int32 (batch,), the position at which decoding begins, index 0 of the steps. The
            past's positions are 0, 1, 2, …
    """

    cache: FixedCache | GrowingCache
    real: Any
    start: Any

    @property
    def key(self) -> Any:
        """Keys (batch, heads, past + slots, key_dim)."""
        return self.cache.key

    @property
    def value(self) -> Any:
        """Values (batch, heads, past + slots, value_dim)."""
        return self.cache.value

    def append(self, key: Tensor, value: Tensor, index: Tensor) -> "ContinuedCache":
        """The cache with one more position; key and value are (batch, heads, beams, width)."""
        past = ops.shape(self.real)[1]
        return self._replace(cache=self.cache.append(key, value, index, past))

    def added(self, held: Any, new: Any, index: Any) -> Any:
        """What is held slot by slot beside the keys, (batch, heads, slots, width), or `None`."""
        return self.cache.added(held, new, index, ops.shape(self.real)[1])


Cache = FixedCache | GrowingCache | ContinuedCache


class ConvolvedState(NamedTuple):
    """What a mechanism remembers behind a convolution.

    Attributes:
        recent: Tensor (rows, kernel_size - 1, features), the inputs before the next one.
        cache: The cache or state of the mechanism itself.
    """

    recent: Any
    cache: Any


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


def continued(
    cache: Cache, key: Tensor, value: Tensor, real: Tensor, start: Tensor = None
) -> ContinuedCache:
    """Puts a past before all that is decoded.

    Args:
        cache: An empty cache.
        key: The past's keys (batch, heads, past, key_dim).
        value: The past's values (batch, heads, past, value_dim).
        real: Boolean (batch, past), `False` where the past has nothing.
        start: int32 (batch,), the position at which decoding begins; by default the past's first
            positions are real, and it begins after them.

    Returns:
        The cache, whose next step is at index 0.

    Raises:
        UserError: The cache has a past already.
    """
    require(
        not isinstance(cache, ContinuedCache),
        "A cache must be empty to be continued.",
        cache=type(cache).__name__,
    )
    if start is None:
        start = ops.sum(ops.cast(real, "int32"), axis=1)
    filled = type(cache)(
        ops.concatenate([key, cache.key], axis=2), ops.concatenate([value, cache.value], axis=2)
    )
    return ContinuedCache(filled, real, start)


def is_growing(cache: Cache) -> bool:
    """Whether a cache has another slot for each position decoded, and none in advance."""
    return isinstance(getattr(cache, "cache", cache), GrowingCache)


def parted(cache: Any) -> tuple[Any, Any]:
    """Parts a cache into what all hypotheses of a source share and what each has for itself.

    The first is never reordered; the second has a row for each hypothesis, and follows it.

    Args:
        cache: What an attention layer's `initial_cache` or `attend_step` gave.

    Returns:
        Both parts, `None` where there is nothing of a kind.
    """
    if isinstance(cache, ConvolvedState):
        shared, own = parted(cache.cache)
        return shared, cache._replace(cache=own)
    return (cache, None) if isinstance(cache, Cache) else (None, cache)


def joined(shared: Any, own: Any) -> Any:
    """The cache whose parts `parted` gave."""
    if shared is None or own is None:
        return own if shared is None else shared
    return own._replace(cache=joined(shared, own.cache))


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
    """Adds position `index`, at which every hypothesis is at its own beam.

    Args:
        ancestors: int32 (rows, positions), with the hypotheses of one source next to each other.
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


def ancestor_mask(ancestors: Any, beams: int, past: Any = None) -> Any:
    """Lets a hypothesis attend to its ancestors alone, and to the past of its source.

    Args:
        ancestors: int32 (rows, positions), -1 at positions that lie ahead.
        beams: Number of hypotheses of each source.
        past: Boolean (rows / beams, past), `False` where the past has nothing; or `None`.

    Returns:
        Boolean (rows / beams, 1, beams, past + positions * beams), True at a hypothesis'
        ancestors.
    """
    slots = ops.arange(beams, dtype="int32")
    is_ancestor = ops.equal(ops.expand_dims(ancestors, -1), slots)  # (rows, positions, beams)
    length = ops.shape(ancestors)[1]
    mask = ops.reshape(is_ancestor, (-1, 1, beams, length * beams))
    if past is None:
        return mask
    sources, slots = ops.shape(past)
    past = ops.broadcast_to(ops.expand_dims(past, (1, 2)), (sources, 1, beams, slots))
    return ops.concatenate([past, mask], axis=3)


def visible_slots(
    cache: Cache, position: Any, beams: int, ancestor_mask: Tensor = None, window: int | None = None
) -> tuple:
    """Masks of what a step may attend to.

    Args:
        cache: The cache, the new position added.
        position: int32 (1 or batch, 1), the new position, see `query_position`.
        beams: Number of hypotheses of each source.
        ancestor_mask: Boolean (batch, 1, beams, slots), or None with one beam.
        window: If given, how many positions away the nearest is that is not attended to.

    Returns:
        Boolean tensors that broadcast to (batch, heads, beams, slots), which must all allow.
    """
    masks = () if ancestor_mask is None else (ancestor_mask,)
    some_empty = ancestor_mask is None and not isinstance(cache, GrowingCache)
    if not some_empty and window is None:
        return masks
    near = slots_until(cache, position, beams)
    if window is not None:
        near = ops.logical_and(near, slot_positions(cache, beams) > position - window)
    return (*masks, ops.expand_dims(near, (1, 2)))


def slots_until(cache: Cache, position: Any, beams: int = 1) -> Any:
    """Which slots hold something at a position or before it.

    Args:
        cache: The cache.
        position: int32 (1 or batch, 1).
        beams: Number of hypotheses of each source.

    Returns:
        Boolean (1 or batch, slots).
    """
    until = ops.less_equal(slot_positions(cache, beams), position)
    if not isinstance(cache, ContinuedCache):
        return until
    since = ops.shape(cache.value)[2] - ops.shape(cache.real)[1]
    since = ops.ones((ops.shape(cache.real)[0], since), dtype="bool")
    return ops.logical_and(until, ops.concatenate([cache.real, since], axis=1))


def query_position(cache: Cache, index: Any) -> Any:
    """The position of a step, int32 (1 or batch, 1).

    Args:
        cache: The cache.
        index: int32, the step's index: a scalar, or one for each row (batch,).
    """
    index = ops.reshape(ops.cast(index, "int32"), (-1, 1))
    return index + ops.expand_dims(cache.start, 1) if isinstance(cache, ContinuedCache) else index


def slot_positions(cache: Cache, beams: int) -> Any:
    """The position of each slot, int32 (1 or batch, slots)."""
    slots = ops.shape(cache.value)[2]
    if not isinstance(cache, ContinuedCache):
        return ops.expand_dims(ops.arange(slots, dtype="int32") // beams, 0)
    batch, past = ops.shape(cache.real)
    before = ops.broadcast_to(ops.arange(past, dtype="int32"), (batch, past))
    since = ops.arange(slots - past, dtype="int32") // beams + ops.expand_dims(cache.start, 1)
    return ops.concatenate([before, since], axis=1)


def filled(cache: Any, new: Any, index: Any, past: Any = 0) -> Any:
    """Writes a position into slots of a fixed number.

    Args:
        cache: Tensor (batch, heads, slots, width).
        new: Tensor (batch, heads, beams, width).
        index: int32, the position: a scalar, or with one beam one for each row (batch,).
        past: Number of slots before those of position 0.

    Returns:
        Tensor of the shape of `cache`.

    Raises:
        UserError: The position is a Python integer, and there are fewer.
    """
    slots, beams = cache.shape[2], new.shape[2]
    if all(isinstance(number, int) for number in (index, past, slots, beams)):
        positions = (slots - past) // beams
        require(
            index < positions,
            "Decoding must not go beyond the cache's positions.",
            index=index,
            positions=positions,
        )
    index = ops.convert_to_tensor(index, dtype="int32")
    if len(index.shape) == 0:
        return ops.slice_update(cache, (0, 0, past + index * ops.shape(new)[2], 0), new)
    positions = ops.arange(ops.shape(cache)[2], dtype="int32")
    here = ops.equal(positions, past + ops.reshape(index, (-1, 1)))  # (batch, length)
    return ops.where(ops.expand_dims(here, (1, 3)), new, cache)


def _require_growth() -> None:
    require(
        keras.backend.backend() == "tensorflow",
        "Caches that grow need TensorFlow; give a `max_length`.",
        max_length=None,
        backend=keras.backend.backend(),
    )


def _no_slots() -> Any:
    """0, known only to the running graph."""
    # A loop's variables may grow only along an axis whose size is not known before it runs.
    zero = ops.convert_to_tensor(0, "int32")
    return ops.while_loop(lambda count: count > 0, lambda count: count - 1, zero)
