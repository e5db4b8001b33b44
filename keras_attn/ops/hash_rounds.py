"""Hashing of vectors, and the order of positions by their hashes."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_attn.ops.autodiff import custom_gradient
from keras_attn.ops.blockwise.block_layout import BlockLayout
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor

_HASHED_AT_ONCE = 64  # positions


def hash_buckets(vectors: Tensor, rotations: Tensor) -> Tensor:
    """Hashes vectors: h(x) = argmax([xR, -xR]).

    Long sequences are hashed one segment after the other, for the number of buckets grows with
    the length.

    Args:
        vectors: Float tensor (batch, heads, length, key_dim).
        rotations: Float tensor (heads, key_dim, rounds, buckets / 2).

    Returns:
        int32 tensor (batch, heads, rounds, length).

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 2.
    """
    vectors = ops.stop_gradient(ops.convert_to_tensor(vectors))
    rotations = ops.cast(rotations, vectors.dtype)
    heads, _, rounds, half = rotations.shape
    length = ops.shape(vectors)[2]
    cut = BlockLayout.cut(length, _HASHED_AT_ONCE, _HASHED_AT_ONCE * heads * rounds * half)
    layout = BlockLayout(_HASHED_AT_ONCE, *cut, is_causal=True)
    if layout.is_whole:
        return ops.swapaxes(_hash(vectors, rotations), 2, 3)

    def visit(_: Any, segment: Any) -> tuple[Any, Any]:
        buckets = _hash(segment, rotations)
        return buckets, buckets

    segments = layout.segments(vectors)
    # The state that a scan must have: the output of the segment before, which is not used.
    state = ops.zeros_like(segments[0, ..., :1], "int32") + ops.zeros((rounds,), "int32")
    buckets = layout.join(ops.scan(visit, state, segments)[1])
    return ops.swapaxes(part(buckets, 2, 0, length), 2, 3)


class HashOrder:
    """The order of positions by bucket in each round of hashing, stable within a bucket.

    Args:
        buckets: int32 (batch, heads, rounds, length).

    Attributes:
        place: Place of each position in the order, int32 (batch, heads, rounds, length).
    """

    def __init__(self, buckets: Any):
        batch, heads, rounds, length = ops.shape(buckets)
        order = ops.cast(ops.argsort(buckets, axis=-1), "int32")  # a stable sort
        self.place = ops.cast(ops.argsort(order, axis=-1), "int32")
        rows = ops.reshape(ops.arange(batch * heads, dtype="int32"), (batch, heads, 1, 1))
        of_round = rows * rounds + ops.arange(rounds, dtype="int32")[:, None]
        self._from_positions = order + rows * length
        self._from_rounds = order + of_round * length
        self._back = self.place + of_round * length

    def sort(self, tensor: Tensor) -> Tensor:
        """(batch, heads, length, width) to (batch, heads, rounds * length, width)."""
        flat, by_round = self._shapes(tensor)

        def with_gradient(tensor: Tensor, order: Any, back: Any) -> tuple[Any, Callable]:
            def gradient(upstream: Tensor) -> tuple:
                return ops.sum(_rows(upstream, back, by_round), axis=2), None, None

            return _rows(tensor, order, flat), gradient

        return custom_gradient(with_gradient)(tensor, self._from_positions, self._back)

    def undo(self, tensor: Tensor) -> Tensor:
        """(batch, heads, rounds * length, width) to (batch, heads, rounds, length, width)."""
        flat, by_round = self._shapes(tensor)

        def with_gradient(tensor: Tensor, back: Any, order: Any) -> tuple[Any, Callable]:
            def gradient(upstream: Tensor) -> tuple:
                return _rows(upstream, order, flat), None, None

            return _rows(tensor, back, by_round), gradient

        return custom_gradient(with_gradient)(tensor, self._back, self._from_rounds)

    def _shapes(self, tensor: Tensor) -> tuple[tuple, tuple]:
        """The shapes of sorted vectors of a width: the rounds in one axis, and in their own."""
        batch, heads, rounds, length = ops.shape(self.place)
        width = ops.shape(tensor)[-1]
        return (batch, heads, rounds * length, width), (batch, heads, rounds, length, width)


def _hash(vectors: Tensor, rotations: Tensor) -> Tensor:
    """Buckets (batch, heads, length, rounds)."""
    rotated = ops.einsum("bhld,hdrf->bhlrf", vectors, rotations)
    # Initial values change nothing of the comparison; without them Keras refuses empty batches.
    highest, lowest = (best(rotated, axis=-1, initial=0.0) for best in (ops.max, ops.min))
    is_positive = ops.greater_equal(highest, -lowest)
    most, least = ops.argmax(rotated, axis=-1), ops.argmin(rotated, axis=-1)
    return ops.cast(ops.where(is_positive, most, least + rotations.shape[-1]), "int32")


def _rows(tensor: Tensor, indices: Tensor, shape: tuple) -> Tensor:
    """Rows (…, width) by their numbers, laid out in a shape."""
    rows = ops.reshape(tensor, (-1, shape[-1]))
    return ops.reshape(ops.take(rows, ops.reshape(indices, (-1,)), axis=0), shape)
