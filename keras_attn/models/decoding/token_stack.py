"""Embedded tokens, or what a front end embeds, that go through a stack of blocks."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_attn.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class TokenStack:
    """The layers from token ids, or other inputs, to vectors, in the order of their use.

    Attributes:
        embedding: Embeds token ids, in which 0 is padding; or a function of other inputs.
        positions: Adds positions, takes a `start_index`; or `None`.
        dropout: Dropout of what is embedded.
        blocks: Blocks of an encoder or a decoder.
        norm: Norm after the last block, or `None`.
        last_dropout: Dropout of what comes out, or `None`.
        output: `TokenEmbedding` that projects to the tokens, where it is not `embedding`.
        options: Further arguments of the blocks' calls.
    """

    embedding: Callable
    positions: keras.layers.Layer | None
    dropout: keras.layers.Layer
    blocks: list
    norm: keras.layers.Layer | None
    last_dropout: keras.layers.Layer | None = None
    output: keras.layers.Layer | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __call__(self, token_ids: Tensor, *source: Any) -> Any:
        """Runs the layers.

        Args:
            token_ids: int32 (batch, length), or what `embedding` takes.
            *source: Vectors (batch, source, features) where blocks attend to a source.

        Returns:
            Vectors (batch, length, features).
        """
        x = self.dropout(self.embedded(token_ids))
        for block in self.blocks:
            x = block(x, *source, **self.options)
        x = self.normalized(x)
        return x if self.last_dropout is None else self.last_dropout(x)

    @property
    def projection(self) -> keras.layers.Layer:
        """The `TokenEmbedding` whose reverse gives the logits."""
        return self.output or self.embedding

    def embedded(self, token_ids: Tensor, start_index: Any = 0) -> Any:
        """Token ids with their positions, the first at `start_index`: a scalar or (batch,)."""
        x = self.embedding(token_ids)
        return x if self.positions is None else self.positions(x, start_index=start_index)

    def normalized(self, vectors: Tensor) -> Any:
        """The output of the stack for an output of its last block."""
        return vectors if self.norm is None else self.norm(vectors)
