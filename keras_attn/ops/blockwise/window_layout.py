"""Cuts sequences for attention inside a window."""

import dataclasses
from typing import Any

from keras import ops

from keras_attn.ops.blockwise.block_layout import BlockLayout, blocks_seen

# Shorter blocks than this make more overhead than they save.
_SMALLEST_BLOCK = 16


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
        size = max(window - 1, _SMALLEST_BLOCK)
        scores = heads * size * size * blocks_seen(is_causal)
        return cls(size, *cls.cut(length, size, scores), is_causal, window)

    def near(self) -> Any:
        """Which of the keys that a block sees each of its queries reaches, (size, keys)."""
        at_query = ops.arange(self.size, dtype="int32") + self.size
        at_key = ops.arange(self.seen * self.size, dtype="int32")
        distances = ops.expand_dims(at_key, 0) - ops.expand_dims(at_query, 1)
        near = ops.less(ops.abs(distances), self.window)
        return ops.logical_and(near, ops.less_equal(distances, 0)) if self.is_causal else near
