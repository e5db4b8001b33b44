"""Cutting an axis into blocks of equal size, with lengths that may be unknown until run time."""

import dataclasses
from typing import Any

from keras import ops

from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Cut:
    """How an axis is cut into blocks, the last one padded.

    Attributes:
        length: Length of the axis.
        count: Number of blocks.
        size: Length of a block.

    Each is an integer, or a scalar tensor where the length is unknown until run time.
    """

    length: Any
    count: Any
    size: Any

    @classmethod
    def of(cls, length: Any, largest: int) -> "Cut":
        """Cuts an axis into the fewest blocks of at most `largest`, padding as little as can be."""
        cut = cls.into(length, largest)
        return cls(length, cut.count, at_least_one((length + cut.count - 1) // cut.count))

    @classmethod
    def into(cls, length: Any, size: int) -> "Cut":
        """Cuts an axis into blocks of `size`, one where there is nothing to cut."""
        return cls(length, at_least_one((length + size - 1) // size), size)

    @property
    def padding(self) -> Any:
        """Number of positions that pad the last block."""
        return self.count * self.size - self.length

    @property
    def may_pad(self) -> bool:
        """Whether the last block is, or could be, padded."""
        return not isinstance(self.padding, int) or self.padding > 0

    def pad(self, tensor: Tensor) -> Tensor:
        """Appends zeros (False) along axis 2 of a tensor of rank 4 until blocks are full."""
        return pad(tensor, 2, self.padding) if self.may_pad else tensor

    def blocks(self, tensor: Tensor) -> Tensor:
        """Cuts (batch, heads, length, width) into blocks (batch, heads, count, size, width)."""
        batch, heads, _, width = ops.shape(tensor)
        return ops.reshape(self.pad(tensor), (batch, heads, self.count, self.size, width))

    def whole(self, blocks: Any) -> Any:
        """Undoes `blocks`."""
        batch, heads, count, size, width = ops.shape(blocks)
        tensor = ops.reshape(blocks, (batch, heads, count * size, width))
        return part(tensor, 2, 0, self.length) if self.may_pad else tensor

    def split(self, tensor: Tensor, kv_heads: int) -> Tensor:
        """Lays padded heads out block first, query heads folded into the rows of a block.

        Args:
            tensor: Tensor (batch, heads, count * size, width).
            kv_heads: Number of key heads, which divides `heads`.

        Returns:
            Tensor (count, batch, kv_heads, heads // kv_heads * size, width).
        """
        batch, heads, _, width = ops.shape(tensor)
        group = heads // kv_heads
        tensor = ops.reshape(tensor, (batch, kv_heads, group, self.count, self.size, width))
        tensor = ops.transpose(tensor, (3, 0, 1, 2, 4, 5))
        return ops.reshape(tensor, (self.count, batch, kv_heads, group * self.size, width))

    def join(self, blocks: Any) -> Any:
        """Undoes `split` and drops the padding.

        Args:
            blocks: Tensor (count, batch, kv_heads, group * size, width).

        Returns:
            Tensor (batch, kv_heads * group, length, width).
        """
        _, batch, kv_heads, rows, width = ops.shape(blocks)
        group = rows // self.size
        tensor = ops.reshape(blocks, (self.count, batch, kv_heads, group, self.size, width))
        tensor = ops.transpose(tensor, (1, 2, 3, 0, 4, 5))
        tensor = ops.reshape(tensor, (batch, kv_heads * group, self.count * self.size, width))
        return part(tensor, 2, 0, self.length) if self.may_pad else tensor


class BlockMask:
    """A mask that is read one block at a time; dimensions of 1 are never broadcast.

    Args:
        mask: Boolean tensor of rank 4, broadcastable to (batch, heads, target, source).
        rows: How the target axis is cut.
        columns: How the source axis is cut.
        kv_heads: Number of key heads.
    """

    def __init__(self, mask: Any, rows: Cut, columns: Cut, kv_heads: int):
        sizes = ops.shape(mask)
        smaller = min if isinstance(sizes[1], int) else ops.minimum
        shared = smaller(sizes[1], kv_heads)
        self._heads = (sizes[0], shared, sizes[1] // shared)
        # The distance of two blocks of the mask: 0 where one serves all blocks.
        self._row_step = _unless_one(sizes[2], rows.size)
        self._column_step = _unless_one(sizes[3], columns.size)
        mask = pad(mask, 2, _unless_one(sizes[2], rows.padding))
        self._mask = pad(mask, 3, _unless_one(sizes[3], columns.padding))

    def block(self, row_block: Tensor, column_block: Tensor) -> Tensor:
        """Reads a block.

        Args:
            row_block: Index of the block of queries, a scalar tensor.
            column_block: Index of the block of keys, a scalar tensor.

        Returns:
            Boolean tensor that broadcasts to
            (batch, kv_heads, heads // kv_heads, rows in a block, columns in a block).
        """
        batch, kv_heads, group = self._heads
        extent = (at_least_one(self._row_step), at_least_one(self._column_step))
        start = (0, 0, row_block * self._row_step, column_block * self._column_step)
        block = ops.slice(self._mask, start, (batch, kv_heads * group, *extent))
        return ops.reshape(block, (batch, kv_heads, group, *extent))


def pad(tensor: Tensor, axis: int, amount: Any) -> Tensor:
    """Appends `amount` zeros (False) along an axis.

    Args:
        tensor: Tensor of any dtype.
        axis: The axis, not negative.
        amount: An integer or a scalar tensor.

    Returns:
        Tensor of the same dtype.
    """
    if isinstance(amount, int) and amount == 0:
        return tensor
    shape = list(ops.shape(tensor))
    shape[axis] = amount
    return ops.concatenate([tensor, ops.zeros(shape, dtype=tensor.dtype)], axis=axis)


def _unless_one(size: Any, amount: Any) -> Any:
    """The amount, or 0 for a dimension of 1."""
    if isinstance(size, int):
        return 0 if size == 1 else amount
    return ops.where(size == 1, 0, amount)


def at_least_one(number: Any) -> Any:
    """The larger of 1 and an integer or a scalar tensor."""
    return max(number, 1) if isinstance(number, int) else ops.maximum(number, 1)
