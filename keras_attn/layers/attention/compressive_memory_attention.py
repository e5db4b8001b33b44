"""Attention to a memory that compresses what it would forget, as in the Compressive Transformer."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.layers.attention.memory_compression import COMPRESSIONS
from keras_attn.layers.attention.recurrent_memory_attention import (
    RecurrentMemoryAttention,
    joined,
    windows,
)
from keras_attn.ops.attention import computing_dtype, dot_product_attention
from keras_attn.validation import require, require_one_of, require_positive


class CompressiveMemory(NamedTuple):
    """States of the segments before, those further back compressed.

    Attributes:
        states: Tensor (batch, memory_length, features).
        real: Boolean (batch, memory_length), `False` where there is nothing (yet).
        compressed: Tensor (batch, compressed_length, features), of what came before `states`.
        compressed_real: Boolean (batch, compressed_length).
    """

    states: Any
    real: Any
    compressed: Any
    compressed_real: Any


@keras.saving.register_keras_serializable(package="keras_attn")
class CompressiveMemoryAttention(RecurrentMemoryAttention):
    """Multi-head attention over a segment, a memory, and a compressed memory before that.

    What falls out of the memory when a segment enters it is not forgotten: every
    `compression_rate` states become one slot of the compressed memory, which forgets its oldest
    slots. What a compression learns it learns from a loss of its own, which training adds: the
    mean squared difference between what the segment reads from the old states and what it reads
    from the compressed ones, by content alone. No gradient of it reaches anything else, and none
    of the model's loss reaches the compression.

    Args:
        memory_length: Number of states remembered as they are.
        compressed_length: Number of compressed states remembered.
        compression_rate: Number of states that become one.
        compression: `"convolution"` (kernel and stride are the rate), `"dilated_convolution"`
            (before it two dilated ones, each added to its input), `"mean"`, `"max"`, or
            `"most_used"` (the states that the segment attends to most).
        relative_positions: Layer that makes attention depend on distances, counted in states and
            slots: `RotaryEmbedding`, `RelativePositionBias`, `AlibiBias` or, by default,
            `TransformerXLPositions`.
        **kwargs: Further arguments of `RecurrentMemoryAttention`.

    Call arguments:
        value: Tensor (batch, source, features), the segment; a multiple of `compression_rate`
            long, or the last states of what falls out are dropped.
        memory: `CompressiveMemory` of the segments before (`initial_memory` for the first), or
            `None` to attend to the segment alone.

    Returns:
        What `MultiHeadAttention` returns, scores over compressed memory, memory and segment
        together; with a `memory` a tuple of that and the `CompressiveMemory` for the next segment.

    Raises:
        UserError: A size is not positive, an unknown compression, a segment shorter than the rate,
            or `attention_axes` are given.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = CompressiveMemoryAttention(2, 4, memory_length=5, compressed_length=4)
        >>> memory = layer.initial_memory(batch_size=2, features=8)
        >>> output, memory = layer(x, x, memory=memory)[:2]
        >>> output.shape
        (2, 5, 8)

    Reference:
        Rae et al., 2019, https://arxiv.org/abs/1911.05507, section 3, algorithms 1 and 2.
    """

    memory_kind = CompressiveMemory

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        memory_length: int,
        compressed_length: int,
        compression_rate: int = 3,
        compression: str = "convolution",
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, memory_length, relative_positions, **kwargs)
        require_positive(compressed_length=compressed_length, compression_rate=compression_rate)
        require_one_of("compression", compression, COMPRESSIONS)
        self.compressed_length = compressed_length
        self.compression_rate = compression_rate
        self.compression = compression
        self.compress = COMPRESSIONS[compression](
            compression_rate, self.kernel_initializer, name="compress", dtype=self.dtype_policy
        )

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.compress.build(query_shape if value_shape is None else value_shape)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask, memory=None):
        options = (training, use_causal_mask)
        if memory is None:
            return super()._attend(inputs, return_attention_scores, *options)
        with_scores = return_attention_scores or self.compress.needs_usage
        result, (old, old_real), kept = self._attend_behind(memory, inputs, with_scores, *options)
        scores = None
        if self.compress.needs_usage:
            output, scores = result
            result = result if return_attention_scores else output
        slots, slots_real = self._compressed(old, old_real, scores)
        if training and self.compress.trainable_variables:
            query, _, _ = inputs.visible(self.compute_dtype)
            pairs = (old, old_real), (slots, slots_real)
            self.add_loss(self._lost(query, inputs.query_mask, *pairs))
        return result, self._with_slots(memory, kept, slots, slots_real)

    def require_segments(self, segment_length):
        require(
            not self.compress.needs_usage,
            "Which states are used most is known only where segments are read one by one.",
            compression=self.compression,
        )
        self._require_rate(segment_length)

    def remember(self, memory, states, real):
        old, kept = self._entered(memory, states, real)
        return self._with_slots(memory, kept, *self._compressed(*old, None))

    def memories(self, states, real, segment_length):
        memory = super().memories(states, real, segment_length)
        # What falls out as a segment enters is as long as the segment.
        before, before_real = self._behind_nothing(states, real, self.memory_length)
        shape = (-1, segment_length, states.shape[2])
        length = ops.shape(states)[1]
        slots, there = self._compressed(
            ops.reshape(before[:, :length], shape),
            ops.reshape(before_real[:, :length], shape[:2]),
            None,
        )
        batch, count = ops.shape(states)[0], segment_length // self.compression_rate
        segments = length // segment_length
        slots, there = self._behind_nothing(
            ops.reshape(slots, (batch, segments * count, shape[2])),
            ops.reshape(there, (batch, segments * count)),
            self.compressed_length,
        )
        starts = ops.arange(segments + 1, dtype="int32") * count
        compressed = (windows(x, starts, self.compressed_length) for x in (slots, there))
        return CompressiveMemory(*memory, *compressed)

    def _with_slots(self, memory, kept, slots, slots_real):
        """The memory of what is kept and of old and new slots."""
        compressed = joined(
            (memory.compressed, memory.compressed_real), (ops.stop_gradient(slots), slots_real)
        )
        last = (x[:, -self.compressed_length :] for x in compressed)
        return CompressiveMemory(*kept, *last)

    def _past(self, memory):
        return joined((memory.compressed, memory.compressed_real), super()._past(memory))

    def _compressed(self, old, old_real, scores):
        """What leaves the memory, as slots, and their mask."""
        self._require_rate(old.shape[1])
        usage = None
        if scores is not None:
            first = self.compressed_length
            usage = ops.mean(scores, axis=(1, 2))[:, first : first + ops.shape(old)[1]]
        return self.compress(old, old_real, usage)

    def _require_rate(self, segment_length):
        require(
            segment_length is None or segment_length >= self.compression_rate,
            "A segment must be at least as long as the `compression_rate`.",
            segment_length=segment_length,
            compression_rate=self.compression_rate,
        )

    def _lost(self, query, query_mask, old, slots):
        """The attention-reconstruction loss (algorithm 2)."""
        variables = [v for projection in self.projections for v in projection.trainable_variables]
        constants = [(v, ops.stop_gradient(ops.convert_to_tensor(v.value))) for v in variables]
        with keras.StatelessScope(state_mapping=constants):
            read, read_again = (
                self._read(ops.stop_gradient(query), *states) for states in (old, slots)
            )
        # Sums, for on JAX `keras.ops.mean` makes float32 of float64.
        error = ops.sum(ops.square(ops.stop_gradient(read) - read_again), axis=(1, 3))
        error = error / (self.num_heads * self.value_dim)
        real = ops.ones_like(error) if query_mask is None else ops.cast(query_mask, error.dtype)
        return ops.sum(error * real) / ops.maximum(ops.sum(real), 1)

    def _read(self, query, states, real):
        """Contexts (batch, heads, target, value_dim) of queries over states, by content alone."""
        heads = self._project(query, states, None)
        context = dot_product_attention(
            heads["query"], heads["key"], heads["value"], mask=ops.expand_dims(real, (1, 2))
        )
        return ops.cast(context, computing_dtype(context.dtype))
