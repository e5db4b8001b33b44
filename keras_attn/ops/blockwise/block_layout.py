"""Cuts a long axis into blocks that see their neighbors, and these into segments."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from keras import ops

from keras_attn.ops.blockwise.blocks import pad
from keras_attn.ops.blockwise.segments import map_segments, numbers_at_once
from keras_attn.ops.positions import relative_shift
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor

# Shorter blocks than this make more overhead than they save.
_SMALLEST_BLOCK = 16


@dataclasses.dataclass(frozen=True)
class BlockLayout:
    """How a sequence is cut into segments of equally many blocks.

    Attributes:
        size: Length of a block.
        blocks: Number of blocks in a segment.
        count: Number of segments. Both are scalar tensors where the length is unknown until run
            time.
        is_causal: Whether blocks see none after them.
    """

    size: int
    blocks: Any
    count: Any
    is_causal: bool

    @staticmethod
    def cut(length: Any, size: int, scores: int) -> tuple[Any, Any]:
        """Cuts a sequence into as few segments as may be.

        Args:
            length: Length of the sequence, an integer or a scalar tensor.
            size: Length of a block.
            scores: How many numbers are computed at once for each block.

        Returns:
            The number of blocks in a segment, and the number of segments.
        """
        most = max(1, numbers_at_once() // scores)
        blocks = (length + size - 1) // size
        count = (blocks + most - 1) // most
        at_least_one = max if isinstance(length, int) else ops.maximum
        count = at_least_one(count, 1)
        # Equally many in each, so that little is padding.
        return at_least_one((blocks + count - 1) // count, 1), count

    @property
    def length(self) -> int:
        """Length of a segment."""
        return self.blocks * self.size

    @property
    def seen(self) -> int:
        """Blocks that a block sees: the one before, itself and, unless causal, the one after."""
        return blocks_seen(self.is_causal)

    @property
    def is_whole(self) -> bool:
        """Whether one segment is known to be all there is."""
        return isinstance(self.count, int) and self.count == 1

    def segments(self, tensor: Tensor) -> Tensor:
        """(batch, heads, length, width) to (count, batch, heads, length of a segment, width)."""
        batch, heads, length, width = ops.shape(tensor)
        tensor = pad(tensor, 2, self.count * self.length - length)
        if self.is_whole:
            return ops.expand_dims(tensor, 0)
        tensor = ops.reshape(tensor, (batch, heads, self.count, self.length, width))
        return ops.transpose(tensor, (2, 0, 1, 3, 4))

    def join(self, segments: Any) -> Any:
        """Undoes `segments` but for the padding at the end."""
        _, batch, heads, length, width = ops.shape(segments)
        tensor = ops.transpose(segments, (1, 2, 0, 3, 4))
        return ops.reshape(tensor, (batch, heads, self.count * length, width))

    def map(
        self, function: Callable, tensors: dict[str, Any], shared: dict[str, Any], like: Callable
    ) -> Any:
        """Computes a function of each segment, and joins the results.

        Args:
            function: `function(number, **tensors of the segment, **shared)`, whose result is
                (batch, heads, length of a segment, width).
            tensors: Segments by name.
            shared: What all segments read, by name.
            like: Function of the tensors of a segment and of `shared` that gives a tensor like the
                result.

        Returns:
            Tensor (batch, heads, length, width), with the padding at the end.
        """
        if not self.is_whole:
            return self.join(map_segments(function, tensors, shared, like))
        first = {name: tensor[0] for name, tensor in tensors.items()}
        return function(ops.zeros((), "int32"), **first, **shared)

    def with_neighbors(self, segments: Any) -> Any:
        """Each segment behind the last block before it and, unless causal, before the next one."""
        first = part(segments, 3, 0, self.size)
        last = part(segments, 3, self.length - self.size, self.size)
        empty = ops.zeros_like(first[:1])
        # No slice is ever empty: XLA's simplification of those aborts the process.
        before = part(ops.concatenate([empty, last], axis=0), 0, 0, self.count)
        parts = [before, segments]
        if not self.is_causal:
            parts.append(part(ops.concatenate([first, empty], axis=0), 0, 1, self.count))
        return ops.concatenate(parts, axis=3)

    def rows(self, tensor: Tensor) -> Tensor:
        """(batch, heads, length of a segment, width) to (batch, heads, blocks, size, width)."""
        # From the tensor: XLA does not know in a loop what was computed before it.
        batch, heads, length, width = ops.shape(tensor)
        return ops.reshape(tensor, (batch, heads, length // self.size, self.size, width))

    def joined(self, rows: Any) -> Any:
        """Undoes `rows`."""
        batch, heads, blocks, size, width = ops.shape(rows)
        return ops.reshape(rows, (batch, heads, blocks * size, width))

    def windows(self, tensor: Tensor) -> Tensor:
        """What each block sees: (…, length with neighbors, …) to (…, blocks, keys, …)."""
        tensor = self.rows(tensor)
        blocks = ops.shape(tensor)[2] - self.seen + 1
        parts = [part(tensor, 2, start, blocks) for start in range(self.seen)]
        return ops.concatenate(parts, axis=3)


@dataclasses.dataclass(frozen=True)
class WindowLayout(BlockLayout):
    """Blocks that are as long as a window reaches.

    Attributes:
        window: How many positions away the nearest key is that is not attended to.
    """

    window: int

    @classmethod
    def of(cls, length: Any, heads: int, window: int, is_causal: bool) -> "WindowLayout":
        """Cuts a sequence into blocks as long as the window reaches, as few segments as may be.

        Args:
            length: Length of the sequence, an integer or a scalar tensor.
            heads: Number of heads.
            window: How many positions away the nearest key is that is not attended to.
            is_causal: Whether keys after the query are masked.
        """
        size = _block_size(window)
        scores = heads * size * size * blocks_seen(is_causal)
        return cls(size, *cls.cut(length, size, scores), is_causal, window)

    @staticmethod
    def longest_block(heads: int, window: int, is_causal: bool) -> int:
        """The longest sequence that is better one block: it has no more scores than blocks have.

        Args:
            heads: Number of heads.
            window: How many positions away the nearest key is that is not attended to.
            is_causal: Whether keys after the query are masked.
        """
        seen = blocks_seen(is_causal) * _block_size(window)
        return min(seen, math.isqrt(numbers_at_once() // heads))

    @property
    def before(self) -> Any:
        """How many of the keys that a block sees are before its own."""
        return self.size

    def near(self) -> Any:
        """Which of the keys that a block sees each of its queries reaches, (size, keys)."""
        at_query = ops.arange(self.size, dtype="int32") + self.before
        at_key = ops.arange(self.seen * self.size, dtype="int32")
        distances = ops.expand_dims(at_key, 0) - ops.expand_dims(at_query, 1)
        near = ops.less(ops.abs(distances), self.window)
        return ops.logical_and(near, ops.less_equal(distances, 0)) if self.is_causal else near

    def by_key(self, bias: Tensor) -> Tensor:
        """A bias by distance as one by key, whatever it is for keys that are not reached.

        Args:
            bias: Tensor (batch, heads, length of a segment or 1, distances), from `1 - window` on.

        Returns:
            Tensor (batch, heads, blocks or 1, size, keys).
        """
        size, keys = self.size, self.seen * self.size
        batch, heads, queries, _ = ops.shape(bias)
        bias = self._at_distances(bias, 1 - size - self.before, size + keys - 1)
        if bias.shape[2] == 1:
            bias = ops.broadcast_to(bias, (batch, heads, size, size + keys - 1))
            return ops.expand_dims(relative_shift(bias, keys), 2)
        blocked = ops.reshape(bias, (batch, heads * (queries // size), size, size + keys - 1))
        shifted = relative_shift(blocked, keys)
        return ops.reshape(shifted, (batch, heads, queries // size, size, keys))

    def _at_distances(self, bias: Tensor, first: Any, count: Any) -> Tensor:
        """The columns of so many distances, 0 where there is none."""
        before = 1 - self.window - first
        after = count - before - ops.shape(bias)[-1]
        return ops.pad(bias, ((0, 0), (0, 0), (0, 0), (before, after)))


@dataclasses.dataclass(frozen=True)
class OneBlockLayout(WindowLayout):
    """A sequence that is one block, and sees itself alone."""

    @classmethod
    def of(cls, length: Any, heads: int, window: int, is_causal: bool) -> "OneBlockLayout":
        """Takes the sequence as it is; arguments as those of `WindowLayout.of`."""
        return cls(length, 1, 1, is_causal, window)

    @property
    def seen(self) -> int:
        """Blocks that the block sees: itself."""
        return 1

    @property
    def before(self) -> int:
        """How many of the keys that the block sees are before its own."""
        return 0

    def with_neighbors(self, segments: Any) -> Any:
        """The segment, which has no neighbors."""
        return segments

    def rows(self, tensor: Tensor) -> Tensor:
        """(batch, heads, length, width) to (batch, heads, 1, length, width)."""
        return ops.expand_dims(tensor, 2)

    def joined(self, rows: Any) -> Any:
        """Undoes `rows`."""
        return ops.squeeze(rows, 2)

    def windows(self, tensor: Tensor) -> Tensor:
        """What the block sees: (…, length, …) to (…, 1, length, …)."""
        return self.rows(tensor)

    def _at_distances(self, bias: Tensor, first: Any, count: Any) -> Tensor:
        # The window may be longer than the sequence, or shorter.
        bias = ops.pad(bias, ((0, 0), (0, 0), (0, 0), (self.size, self.size)))
        return part(bias, -1, first + self.size + self.window - 1, count)


def _block_size(window: int) -> int:
    return max(window - 1, _SMALLEST_BLOCK)


def blocks_seen(is_causal: bool) -> int:
    """How many blocks a block sees, itself included."""
    return 2 if is_causal else 3
