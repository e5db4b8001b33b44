"""Attention to the states of earlier segments as well, as in "Transformer-XL"."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import AttentionInputs
from keras_attn.layers.attention.capture import are_different, is_capturing, noted
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.positions.transformer_xl import TransformerXLPositions
from keras_attn.ops.decoding.cache import ContinuedCache, FixedCache, continued
from keras_attn.ops.masks import combine_masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


class Memory(NamedTuple):
    """States of the segments before.

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
        relative_positions: Layer that makes attention depend on distances: `RotaryEmbedding`,
            `RelativePositionBias`, `AlibiBias` or, by default, `TransformerXLPositions`.
        **kwargs: Further arguments of `MultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), the segment.
        memory: `Memory` of the segments before (`initial_memory` for the first), or `None` to
            attend to the segment alone.
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), `True` where a query may attend to a key of the
            segment. All masks are about the segment alone.

    Returns:
        What `MultiHeadAttention` returns, scores over memory and segment together; with a
        `memory` a tuple of that and the `Memory` for the next segment.

    Raises:
        UserError: A size is not positive, `attention_axes` are given, or a memory is none or of
            another size.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = RecurrentMemoryAttention(2, 4, memory_length=5)
        >>> memory = layer.initial_memory(batch_size=2, features=8)
        >>> output, memory = layer(x, x, memory=memory)
        >>> output.shape
        (2, 5, 8)

    Reference:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860, section 3.2.
    """

    can_cross = False
    _has_one_length = False
    fixed_arguments = ("attention_axes",)
    memory_kind = Memory
    # What is forgotten is gone, unless a subclass compresses it.
    compressed_length = 0
    compression_rate = 1

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
        attention_axes = kwargs.pop("attention_axes", None)
        require(
            attention_axes is None,
            "A memory follows a single axis: `attention_axes` must not be given.",
            attention_axes=attention_axes,
        )
        super().__init__(num_heads, key_dim, relative_positions=relative_positions, **kwargs)
        self.memory_length = memory_length

    def initial_memory(self, batch_size: Any, features: int) -> Memory:
        """The memory before the first segment, of nothing.

        Args:
            batch_size: Number of sequences, a number or a scalar int32 tensor.
            features: Number of the inputs' features.
        """
        return self._memory_of(ops.zeros, batch_size, features)

    def _memory_of(self, make, batch_size, features) -> Any:
        """A memory of what a function makes of the shape and the dtype of each of its tensors."""

        def part(name):
            length = self.compressed_length if "compressed" in name else self.memory_length
            if name.endswith("real"):
                return make((batch_size, length), "bool")
            return make((batch_size, length, features), self.compute_dtype)

        return self.memory_kind(*map(part, self.memory_kind._fields))

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
        inputs = (query, value, key, query_mask, value_mask, key_mask, attention_mask)
        options = (return_attention_scores, training, use_causal_mask)
        return self._call_checked(inputs, *options, memory=memory)

    def _attend(self, inputs, *options, memory=None):
        if memory is None:
            return super()._attend(inputs, *options)
        result, _, kept = self._attend_behind(memory, inputs, *options)
        return result, Memory(*kept)

    def _attend_behind(self, memory, inputs, *options) -> tuple:
        """Attends to a segment and to what precedes it.

        Returns:
            What `MultiHeadAttention` returns, what leaves the memory as the segment enters it, and
            what is in it then: pairs of states and which of them exist.
        """
        crosses = is_capturing() and are_different(inputs.query, inputs.value)
        query, value, key = inputs.visible(self.compute_dtype)
        self._require_memory(memory, value)
        past, past_real = self._past(memory)
        past = ops.stop_gradient(ops.cast(past, value.dtype))
        real = combine_masks(inputs.value_mask, inputs.key_mask)
        if real is None:
            real = ops.ones(ops.shape(value)[:2], dtype="bool")
        values, mask = joined((past, past_real), (value, real))
        both = AttentionInputs(
            query,
            values,
            None if key is None else ops.concatenate([past, key], axis=1),
            query_mask=inputs.query_mask,
            value_mask=mask,
            attention_mask=_behind(past, inputs.attention_mask),
        )
        with noted(crosses=crosses, columns_before=past.shape[1]):
            result = super()._attend(both, *options)
        return result, *self._entered(memory, value, real)

    def _require_inputs(self, inputs):
        inputs.require_fitting(self.num_heads)

    def _require_memory(self, memory, value):
        kind = self.memory_kind
        require(
            isinstance(memory, kind),
            f"`memory` must be a {kind.__name__}, as `initial_memory` and each call return it.",
            memory=type(memory).__name__,
        )
        shapes = self._memory_of(lambda shape, _: shape, value.shape[0], value.shape[2])
        for name, found, expected in zip(kind._fields, memory, shapes, strict=True):
            shape = getattr(found, "shape", None)
            require(
                shape is not None
                and len(shape) == len(expected)
                and all(
                    size == other or None in (size, other)
                    for size, other in zip(expected, shape, strict=True)
                ),
                f"`{name}` of `memory` must have the shape that `initial_memory` gives it.",
                shape=found if shape is None else tuple(shape),
                expected=expected,
            )

    def require_segments(self, segment_length: int) -> None:
        """Raises unless whole sequences can be read in segments of a length, see `memories`.

        Raises:
            UserError: What is remembered depends on what was attended to, or a segment is shorter
                than what is compressed to one state.
        """

    def remember(self, memory: Any, states: Any, real: Any) -> Any:
        """Lets a segment enter a memory without attending to anything.

        Args:
            memory: The memory before the segment.
            states: Tensor (batch, length, features), the inputs of the segment.
            real: Boolean (batch, length), `False` at padding.

        Returns:
            The memory for the next segment.
        """
        _, kept = self._entered(memory, states, real)
        return Memory(*kept)

    def memories(self, states: Any, real: Any, segment_length: int) -> Any:
        """The memories before all segments of a sequence at once, and the one after the last.

        Args:
            states: Tensor (batch, segments * segment_length, features), the inputs.
            real: Boolean (batch, segments * segment_length), `False` at padding.
            segment_length: Number of positions of a segment.

        Returns:
            The memory, each tensor with an axis (segments + 1) after that of the batch.
        """
        states, real = self._behind_nothing(states, real, self.memory_length)
        segments = (ops.shape(states)[1] - self.memory_length) // segment_length
        starts = ops.arange(segments + 1, dtype="int32") * segment_length
        return Memory(*(windows(x, starts, self.memory_length) for x in (states, real)))

    def _behind_nothing(self, states, real, length) -> tuple:
        """States without gradient and their mask, behind a length of hidden ones."""
        states = ops.cast(ops.stop_gradient(states), self.compute_dtype)
        shape = (ops.shape(states)[0], length)
        nothing = (ops.zeros((*shape, states.shape[2]), states.dtype), ops.zeros(shape, "bool"))
        return joined(nothing, (states, real))

    def _entered(self, memory, states, real) -> tuple:
        """What leaves the memory as a segment enters it, and what is in it then."""
        states, real = joined((memory.states, memory.real), (states, real))
        states = ops.stop_gradient(states)
        last = -self.memory_length
        return (states[:, :last], real[:, :last]), (states[:, last:], real[:, last:])

    def _past(self, memory) -> tuple:
        """The states that a segment attends to before itself, and their mask."""
        return memory.states, ops.cast(memory.real, "bool")

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1, memory=None):
        """Makes the cache for decoding; see `MultiHeadAttention.initial_cache`.

        Args:
            batch_size: Number of sequences, a number or a scalar int32 tensor.
            max_length: Number of positions to be decoded, as JAX and XLA need it; or `None`.
            beams: Number of hypotheses of each source, one where there is a memory.
            memory: The memory that the decoded positions attend to as well; position 0 is the
                first after it.

        Returns:
            The cache.

        Raises:
            UserError: Several beams with a memory.
        """
        cache = super().initial_cache(batch_size, max_length, beams)
        if memory is None:
            return cache
        require(beams == 1, "Decoding after a memory needs a single beam.", beams=beams)
        past, real = self._past(memory)
        key, value = self._moved_keys(past)
        return continued(cache, key, value, real, _ends(past))

    def segment_cache(self, memory: Any, states: Any) -> ContinuedCache:
        """Makes a cache for decoding within a segment that has begun.

        Args:
            memory: The memory before the segment.
            states: Tensor (batch, segment_length, features), the inputs at the segment's
                positions; those that are not decoded yet count for nothing.

        Returns:
            The cache, with room for the segment and one beam; index 0 is the first position.
        """
        past, real = self._past(memory)
        states = ops.concatenate([ops.cast(past, states.dtype), states], axis=1)
        return ContinuedCache(FixedCache(*self._moved_keys(states)), real, _ends(past))

    def _moved_keys(self, states) -> tuple:
        """Keys and values of states, the first at position 0."""
        heads = self._project(None, ops.cast(states, self.compute_dtype), None)
        at_key = ops.arange(ops.shape(states)[1], dtype="int32")
        # Keys alone are moved; the hook wants a query beside them.
        query = ops.zeros((1, self.num_heads, 1, self.key_dim), self.compute_dtype)
        _, key = self.relative_positions.transform(query, heads["key"], at_key[:1], at_key)
        return key, heads["value"]

    def compute_output_spec(self, query, value, *arguments, memory=None, **options):
        spec = super().compute_output_spec(query, value, *arguments, **options)
        if memory is None:
            return spec
        if options.get("return_attention_scores"):
            output, scores = spec
            source = scores.shape[-1]
            past = self.compressed_length + self.memory_length
            source = None if source is None else past + source
            spec = (output, keras.KerasTensor((*scores.shape[:-1], source), scores.dtype))
        return spec, self._memory_of(keras.KerasTensor, value.shape[0], value.shape[2])


def joined(*parts: tuple[Any, Any]) -> tuple[Any, Any]:
    """States and their masks, one part behind the other, of the dtype of the last one."""
    states, real = zip(*parts, strict=True)
    states = [ops.cast(x, states[-1].dtype) for x in states]
    real = [ops.cast(x, "bool") for x in real]
    return ops.concatenate(states, axis=1), ops.concatenate(real, axis=1)


def _ends(past: Any) -> Any:
    """The position after a past, for each row."""
    return ops.full(ops.shape(past)[:1], ops.shape(past)[1], dtype="int32")


def windows(x: Tensor, starts: Tensor, length: int) -> Any:
    """The windows of a length from each start on.

    Args:
        x: Tensor (batch, positions, …).
        starts: int32 (count,).
        length: Number of positions.

    Returns:
        Tensor (batch, count, length, …).
    """
    at = ops.expand_dims(starts, 1) + ops.arange(length, dtype="int32")
    return ops.take(x, at, axis=1)


def _behind(past: Tensor, attention_mask: Tensor) -> Any:
    """A mask over the segment as one over the past and the segment."""
    if attention_mask is None:
        return None
    shape = (*ops.shape(attention_mask)[:-1], ops.shape(past)[1])
    return ops.concatenate([ops.ones(shape, dtype="bool"), attention_mask], axis=-1)
