"""Attention to the states of earlier segments as well, as in "Transformer-XL"."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.transformer_xl_positions import TransformerXLPositions
from keras_attn.ops.masks import combine_masks
from keras_attn.validation import require, require_positive


class Memory(NamedTuple):
    """States of the segments before, and which of them there are.

    Attributes:
        states: Tensor (batch, memory_length, features).
        real: Boolean (batch, memory_length), `False` where there is nothing (yet).
    """

    states: Any
    real: Any


@keras.saving.register_keras_serializable(package="keras_attn")
class RecurrentMemoryAttention(MultiHeadAttention):
    """Multi-head attention over a segment and a memory of what came before it.

    A stream is read segment by segment. The inputs of each segment are remembered, without
    gradient, and the next one attends to them too, so that what a model sees reaches back by the
    memory's length at each layer. The memory is a value that goes in and comes out.

    Args:
        num_heads: Number of query heads.
        key_dim: Size of each head's query and key.
        memory_length: Number of states remembered.
        relative_positions: Layer to build from what lets it see distances: `RotaryEmbedding`,
            `RelativePositionBias`, `AlibiBias` or, by default, `TransformerXLPositions`.
        **kwargs: Further arguments of `MultiHeadAttention`, without `attention_axes`.

    Call arguments:
        query: Tensor (batch, target, features), of the layer's compute dtype.
        value: Tensor (batch, source, features), the segment.
        memory: `Memory` of the segments before (`initial_memory` for the first), or `None` to
            attend to the segment alone.
        key, query_mask, value_mask, key_mask, attention_mask, return_attention_scores, training,
            use_causal_mask: As for `MultiHeadAttention`; masks are about the segment alone.

    Returns:
        What `MultiHeadAttention` returns, scores over memory and segment together; with a
        `memory` a tuple of that and the `Memory` for the next segment.

    Raises:
        UserError: A size is not positive, or `attention_axes` are given.

    Reference:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860, section 3.2.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        memory_length: int,
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_positive(num_heads=num_heads, key_dim=key_dim, memory_length=memory_length)
        if relative_positions is None:
            relative_positions = TransformerXLPositions(num_heads, key_dim)
        super().__init__(num_heads, key_dim, relative_positions=relative_positions, **kwargs)
        require(
            self.attention_axes is None,
            "A memory follows a single axis: `attention_axes` must not be given.",
            attention_axes=self.attention_axes,
        )
        self.memory_length = memory_length

    def initial_memory(self, batch_size: Any, features: int) -> Memory:
        """The memory before the first segment, of nothing.

        Args:
            batch_size: Number of sequences, a number or a scalar int32 tensor.
            features: Number of the inputs' features.
        """
        shape = (batch_size, self.memory_length)
        return Memory(
            ops.zeros((*shape, features), self.compute_dtype), ops.zeros(shape, dtype="bool")
        )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        memory=None,
    ):
        options = {
            "return_attention_scores": return_attention_scores,
            "training": training,
            "use_causal_mask": use_causal_mask,
        }
        if memory is None:
            masks = (query_mask, value_mask, key_mask, attention_mask)
            return super().call(query, value, key, *masks, **options)
        states = ops.stop_gradient(ops.cast(memory.states, value.dtype))
        behind = ops.concatenate([states, value], axis=1)
        real = _real(value, combine_masks(value_mask, key_mask))
        real = ops.concatenate([ops.cast(memory.real, "bool"), real], axis=1)
        result = super().call(
            query,
            behind,
            None if key is None else ops.concatenate([states, key], axis=1),
            query_mask=query_mask,
            value_mask=real,
            attention_mask=_behind_memory(attention_mask, self.memory_length),
            **options,
        )
        length = self.memory_length
        return result, Memory(ops.stop_gradient(behind[:, -length:]), real[:, -length:])

    def compute_output_spec(self, query, value, *arguments, memory=None, **options):
        spec = super().compute_output_spec(query, value, *arguments, **options)
        if memory is None:
            return spec
        states = keras.KerasTensor(
            (value.shape[0], self.memory_length, value.shape[2]), self.compute_dtype
        )
        real = keras.KerasTensor((value.shape[0], self.memory_length), "bool")
        if options.get("return_attention_scores"):
            output, scores = spec
            source = None if scores.shape[-1] is None else scores.shape[-1] + self.memory_length
            spec = (output, keras.KerasTensor((*scores.shape[:-1], source), scores.dtype))
        return spec, Memory(states, real)

    def get_config(self):
        config = super().get_config() | {"memory_length": self.memory_length}
        del config["attention_axes"]
        return config


def _real(value: Any, mask: Any) -> Any:
    if mask is not None:
        return mask
    return ops.ones(ops.shape(value)[:2], dtype="bool")


def _behind_memory(attention_mask: Any, memory_length: int) -> Any:
    """A mask over the segment as one over memory and segment."""
    if attention_mask is None:
        return None
    attention_mask = ops.cast(attention_mask, "bool")
    shape = (*ops.shape(attention_mask)[:-1], memory_length)
    return ops.concatenate([ops.ones(shape, dtype="bool"), attention_mask], axis=-1)
