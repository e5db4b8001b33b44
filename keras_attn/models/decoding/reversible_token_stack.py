"""Embedded tokens that go through reversible blocks, as two streams."""

import dataclasses
from typing import Any

from keras import ops

from keras_attn.layers.blocks.reversible_block import ReversibleBlock
from keras_attn.layers.blocks.reversible_stack import ReversibleStack
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.tensors import Tensor


class ReversibleTokenStack(TokenStack):
    """A decoder of reversible blocks: both streams begin as the embedding, and end as their mean.

    Between its blocks a step has both streams side by side, (…, 2 * features).

    Args:
        stack: The reversible blocks.
        **parts: Fields of `TokenStack` besides `blocks`.
    """

    def __init__(self, stack: ReversibleStack, **parts: Any) -> None:
        super().__init__(blocks=[_SteppedBlock(block) for block in stack.blocks], **parts)
        object.__setattr__(self, "_stack", stack)

    def __call__(self, token_ids: Tensor) -> Any:
        """Runs the layers; see `TokenStack`."""
        x = self.dropout(super().embedded(token_ids))
        return self._normalized(*self._stack(x, x, use_causal_mask=True))

    def embedded(self, token_ids: Tensor, start_index: Any = 0) -> Any:
        """Token ids with their positions, as both streams."""
        x = super().embedded(token_ids, start_index)
        return ops.concatenate([x, x], axis=-1)

    def normalized(self, vectors: Tensor) -> Any:
        """The normalized mean of both streams of the last block's output."""
        return self._normalized(*_streams(vectors))

    def _normalized(self, first: Tensor, second: Tensor) -> Any:
        return super().normalized((first + second) / 2)


@dataclasses.dataclass(frozen=True)
class _SteppedBlock:
    """A reversible block with the steps of a decoder's."""

    block: ReversibleBlock

    def initial_cache(self, batch_size: Any, max_length: int | None = None, beams: int = 1) -> Any:
        return self.block.initial_cache(batch_size, max_length, beams)

    def decode_step(
        self, inputs: Any, cache: Any, index: Any, source: Any = None, ancestor_mask: Tensor = None
    ) -> tuple:
        streams, cache = self.block.decode_step(*_streams(inputs), cache, index, ancestor_mask)
        return ops.concatenate(streams, axis=-1), cache

    def decode_prompt(self, inputs: Any, cache: Any, real: Any) -> tuple:
        streams, cache = self.block.decode_prompt(*_streams(inputs), cache, real)
        return ops.concatenate(streams, axis=-1), cache


def _streams(vectors: Tensor) -> list:
    return ops.split(vectors, 2, axis=-1)
