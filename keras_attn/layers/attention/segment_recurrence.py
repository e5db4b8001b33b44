"""Attention with a memory over one long sequence, segment by segment."""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import AttentionLayer, DecodingSteps
from keras_attn.layers.attention.capture import CapturedAttention, rearranged
from keras_attn.layers.attention.compatibility import build_attention
from keras_attn.layers.attention.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.hidden_positions import of_known_features, without_hidden
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


class SegmentState(NamedTuple):
    """What decoding remembers: the memory, and the segment as far as it goes.

    Attributes:
        memory: The memory before the segment.
        states: Tensor (rows, segment_length, features), the inputs at the segment's positions.
        cache: Keys and values of the memory and of the segment.
        filled: int32 (rows,), the number of the segment's positions so far.
    """

    memory: Any
    states: Any
    cache: Any
    filled: Any


@keras.saving.register_keras_serializable(package="keras_attn")
class SegmentRecurrence(DecodingSteps, AttentionLayer):
    """Self-attention to the own segment and to a memory of those before, for whole sequences.

    Gives what the memory attention gives when it reads the segments one after the other, but reads
    all of them at once, as other attention layers do: in a model each sequence is a stream of its
    own, as long as one likes, in time and memory linear in its length. Decoding needs a state of
    constant size.

    Args:
        attention: `RecurrentMemoryAttention` or `CompressiveMemoryAttention` to build the
            attention from. What is compressed must not depend on what is attended to
            (`"most_used"`).
        segment_length: Number of positions of a segment.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, 1, 1, length), `True` where all
            queries may attend to a key.
        return_attention_scores: Must be `False`.
        training: Whether dropout is applied, and the loss of a compression added.
        use_causal_mask: Whether a position attends to none after it in its segment; of other
            segments it sees only those before.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: `attention` has no memory or compresses by usage, `segment_length` is not
            positive or shorter than the compression's rate, the sequences differ in length,
            scores are asked for, or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> attention = RecurrentMemoryAttention(2, 4, memory_length=2)
        >>> SegmentRecurrence(attention, segment_length=2)(x, x).shape
        (2, 5, 8)

    References:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860, section 3.2.
        Rae et al., 2019, https://arxiv.org/abs/1911.05507, section 3.
    """

    can_cross = False

    def __init__(self, attention: keras.layers.Layer, segment_length: int, **kwargs):
        require(
            kwargs.pop("relative_positions", None) is None,
            "`relative_positions` are given to the attention inside, which takes them.",
            attention=type(attention).__name__,
        )
        super().__init__(**kwargs)
        require_positive(segment_length=segment_length)
        require(
            isinstance(attention, RecurrentMemoryAttention),
            "`attention` must be a RecurrentMemoryAttention or a CompressiveMemoryAttention.",
            attention=type(attention).__name__,
        )
        self.attention = copy_layer(attention, "attention", dtype=self.dtype_policy)
        self.attention.require_segments(segment_length)
        self.segment_length = segment_length

    def build(self, query_shape, value_shape=None, key_shape=None):
        build_attention(self.attention, query_shape)
        self.features = query_shape[-1]

    def _require_inputs(self, inputs):
        inputs.require_fitting(self.attention.num_heads, same_length=True)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        query, value, key = (
            of_known_features(x, self.features) for x in inputs.visible(self.compute_dtype)
        )
        batch, length = ops.shape(query)[:2]
        real = inputs.mask_of_positions()
        if real is None:
            real = ops.ones((1, 1), dtype="bool")
        real = ops.broadcast_to(real, (batch, length))
        value, real = self._whole(value), self._whole(real)
        query_mask = inputs.query_mask
        if query_mask is not None:
            query_mask = ops.broadcast_to(query_mask, (batch, length))
            query_mask = self._folded(self._whole(query_mask))
        memories = self.attention.memories(value, real, self.segment_length)
        with rearranged(lambda found: self._over_positions(found, batch, length)):
            output, _ = self.attention(
                self._folded(self._whole(query)),
                self._folded(value),
                None if key is None else self._folded(self._whole(key)),
                query_mask=query_mask,
                value_mask=self._folded(real),
                training=training,
                use_causal_mask=use_causal_mask,
                # The last one is what comes after the sequence.
                memory=keras.tree.map_structure(lambda x: _flat(x[:, :-1]), memories),
            )
        output = ops.reshape(output, (batch, ops.shape(value)[1], *output.shape[2:]))
        return output[:, :length]

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        shape = (batch_size, self.segment_length, self.features)
        memory = self.attention.initial_memory(batch_size, self.features)
        states = ops.zeros(shape, self.compute_dtype)
        return self._state(memory, states, ops.zeros((batch_size,), "int32"))

    def attend_prompt(self, query, cache, real):
        query = without_hidden(query, real)
        output = self(query, query, use_causal_mask=True)
        length, count = self.segment_length, ops.sum(ops.cast(real, "int32"), axis=1)
        states, real = self._whole(query), self._whole(ops.cast(real, "bool"))
        memories = self.attention.memories(states, real, length)
        segment = count // length  # (batch,), that in which decoding goes on
        memory = keras.tree.map_structure(lambda x: _chosen(x, segment), memories)
        # One more, where decoding goes on after the last.
        states = ops.pad(states, ((0, 0), (0, length), (0, 0)))
        states = _chosen(
            ops.reshape(states, (ops.shape(states)[0], -1, length, self.features)), segment
        )
        return output, self._state(memory, states, count % length)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        x = ops.reshape(query, (-1, 1, self.features))  # (rows, 1, features)
        output, of_segment = self.attention.attend_step(x, cache.cache, cache.filled)
        here = ops.arange(self.segment_length, dtype="int32") == ops.expand_dims(cache.filled, 1)
        states = ops.where(ops.expand_dims(here, -1), ops.cast(x, cache.states.dtype), cache.states)
        state = SegmentState(cache.memory, states, of_segment, cache.filled + 1)
        is_full = state.filled == self.segment_length
        state = ops.cond(ops.any(is_full), lambda: self._next(state, is_full), lambda: state)
        return ops.reshape(output, (*ops.shape(query)[:2], output.shape[-1])), state

    def _next(self, state, is_full):
        """The state in which segments that are full are remembered, and new ones begun."""
        real = ops.ones(ops.shape(state.states)[:2], dtype="bool")
        memory = self.attention.remember(state.memory, state.states, real)
        begun = self._state(memory, state.states, ops.zeros_like(state.filled))

        def of_its_own(new, old):
            rows = ops.reshape(is_full, (-1, *[1] * (len(old.shape) - 1)))
            return ops.where(rows, ops.cast(new, old.dtype), old)

        return keras.tree.map_structure(of_its_own, begun, state)

    def _state(self, memory, states, filled):
        return SegmentState(memory, states, self.attention.segment_cache(memory, states), filled)

    def _over_positions(self, found, batch, length) -> CapturedAttention:
        """What segments attended to, as one matrix over the slots and positions of the sequence."""
        attention, size = self.attention, self.segment_length
        weights, heads = found.weights, found.weights.shape[1]
        require(
            None not in weights.shape[::2],
            "Capturing the attention of segments needs a sequence of known length.",
            shape=tuple(weights.shape),
        )
        segments = weights.shape[0] // batch
        weights = ops.reshape(weights, (batch, segments, heads, size, weights.shape[3]))
        new_slots = size // attention.compression_rate if attention.compressed_length else 0
        slots, rows = new_slots * (segments - 1), []
        for segment in range(segments):
            compressed, rest = ops.split(
                weights[:, segment], [attention.compressed_length], axis=-1
            )
            # The last slots before the segment, and the last positions up to its end.
            compressed = _placed(compressed, new_slots * segment, slots)
            rest = _placed(rest, size * (segment + 1), size * segments)
            rows.append(ops.concatenate([compressed, rest[..., :length]], axis=-1))
        weights = ops.concatenate(rows, axis=2)[:, :, :length]
        past = attention.memory_length + attention.compressed_length
        real = ops.reshape(found.source_real[:, past:], (batch, -1))[:, :length]
        filled = ops.any(weights > 0, axis=(1, 2))[:, :slots]
        rate = attention.compression_rate
        first = [
            slot // new_slots * size - attention.memory_length + slot % new_slots * rate
            for slot in range(slots)
        ]
        return dataclasses.replace(
            found,
            layer=self,
            weights=weights,
            query_real=ops.reshape(found.query_real, (batch, -1))[:, :length],
            source_real=ops.concatenate([filled, real], axis=1),
            columns_before=slots,
            pattern=found.pattern
            | {
                "segment": size,
                "memory": attention.memory_length,
                "compressed": attention.compressed_length,
                "slots": [(start, start + rate) for start in first],
            },
        )

    def _whole(self, x):
        """Filled up with nothing at the end, to a number of whole segments."""
        # Of nothing negative: tf2onnx rounds quotients towards zero.
        missing = (
            self.segment_length - ops.shape(x)[1] % self.segment_length
        ) % self.segment_length
        return ops.pad(x, ((0, 0), (0, missing), *[(0, 0)] * (len(x.shape) - 2)))

    def _folded(self, x):
        """Whole segments as rows: (batch * segments, segment_length, …)."""
        return ops.reshape(x, (-1, self.segment_length, *x.shape[2:]))

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return self.attention.compute_output_shape(query_shape)


def _placed(x: Tensor, end: int, total: int) -> Any:
    """Columns that end at a place among as many as there are; those before the first fall out."""
    start = end - x.shape[-1]
    x = x[..., max(-start, 0) :]
    return ops.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(max(start, 0), total - end)])


def _flat(x: Tensor) -> Any:
    """(batch, segments, …) as (batch * segments, …)."""
    return ops.reshape(x, (-1, *x.shape[2:]))


def _chosen(x: Tensor, at: Any) -> Any:
    """Of (batch, segments, …) the segment at (batch,) of each row."""
    index = ops.reshape(at, (-1, *[1] * (len(x.shape) - 1)))
    return ops.take_along_axis(x, index, axis=1)[:, 0]
