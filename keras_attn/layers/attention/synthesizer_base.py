"""What synthesizers have in common: attention whose scores come from the query alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import reads_masks
from keras_attn.layers.attention.capture import show_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention, require_same_length
from keras_attn.layers.attention.synthesizer_scores import ScoredPositions
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.ops import masks
from keras_attn.ops.attention import attend_by_scores
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    slot_positions,
    visible_slots,
)
from keras_attn.validation import require, require_positive, require_rate


class SynthesizerAttention(BaseMultiHeadAttention):
    """Averages the heads' values by the softmax of synthesized scores.

    A subclass makes `self.scores`, one of `keras_attn.layers.attention.synthesizer_scores`, or says
    otherwise what the scores are (`_scores`).

    Args:
        num_heads: Number of heads.
        key_dim: Size that each head has inside, and of its value unless `value_dim` is given.
        max_length: Greatest length.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `BaseMultiHeadAttention`.
    """

    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(max_length=max_length)
        require_rate(dropout=dropout)
        self.max_length = max_length
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if dropout else None

    def build(self, query_shape, value_shape=None, key_shape=None):
        require_same_length(self, query_shape, value=value_shape, key=key_shape)
        self._require_length(query_shape)
        super().build(query_shape, value_shape, key_shape)
        self._build_scores(query_shape)

    def _build_scores(self, query_shape) -> None:
        self.scores.build(query_shape)

    def _head_sizes(self):
        return {"value": (self.num_heads, self.value_dim)}

    def _scores(
        self,
        query: Any,
        heads: dict,
        positions: ScoredPositions,
        columns: Callable[[Any], Any] = lambda scores: scores,
    ) -> Any:
        """Scores (batch or 1, heads, target, source), float32 or wider.

        Args:
            query: Tensor (batch, target, features).
            heads: Its heads, and those of the source, by role.
            positions: Of the queries, and of which there are synthesized scores.
            columns: Takes the source's (..., source) of those synthesized.
        """
        return columns(self.scores(query, positions=positions))

    @reads_masks
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
    ):
        query, value, key = self._visible(
            query, value, key, query_mask, value_mask, key_mask, attention_mask
        )
        self._require_length(query.shape)
        heads = self._project(query, value, key, training)
        scores = self._scores_of_whole(query, heads)
        dropout = self.dropout if training else 0.0
        if dropout or return_attention_scores:  # which each sequence has of its own
            scores = ops.broadcast_to(scores, (ops.shape(query)[0], *ops.shape(scores)[1:]))
        mask = masks.separate_masks(query_mask, value_mask, key_mask, attention_mask)
        attend = partial(
            attend_by_scores,
            scores,
            mask=masks.combine_masks(*mask),
            is_causal=use_causal_mask,
        )
        result = attend(
            heads["value"],
            dropout=dropout,
            seed=self.seed_generator,
            return_scores=return_attention_scores,
        )
        show_attention(self, attend, heads["value"], mask, is_causal=use_causal_mask)
        if not return_attention_scores:
            return self._project_back(result, training)
        context, probabilities = result
        return self._project_back(context, training), probabilities

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        """Makes the empty cache for decoding, to be filled by `attend_step`.

        Args:
            batch_size: Number of sequences, or of sources of which several hypotheses are
                decoded; a number or a scalar int32 tensor.
            max_length: Number of positions the cache can hold after a prompt, as JAX and XLA need
                it; `None`, on TensorFlow without XLA, for a cache that grows. A prompt and what
                follows must not become longer than the layer's `max_length`.
            beams: Number of hypotheses of each source.

        Returns:
            The cache, of values and, where keys are compared, of keys: see
            `keras_attn.ops.decoding.cache`.

        Raises:
            UserError: It is to hold more than the layer's `max_length`.
        """
        require(
            max_length is None or max_length <= self.max_length,
            "Decoding must not become longer than the attention's `max_length`.",
            length=max_length,
            max_length=self.max_length,
        )
        widths = (self._head_sizes().get("key", (self.num_heads, 0))[1], self.value_dim)
        return initial_cache(
            batch_size, self.num_heads, widths, self.compute_dtype, max_length, beams
        )

    def attend_prompt(self, query, cache, real):
        """Attends causally within a prompt, which the cache then holds.

        Args:
            query: Tensor (batch, length, features), the inputs at positions 0, 1, 2, …
            cache: What `initial_cache` made.
            real: Boolean (batch, length), which positions are to be held: the first ones of each
                sequence.

        Returns:
            The output (batch, length, features), and the cache, in which step 0 follows the last
            position held.

        Raises:
            UserError: The prompt is longer than the layer's `max_length`.
        """
        self._require_length(query.shape)
        query = without_hidden(ops.cast(query, self.compute_dtype), real)
        heads = self._project(query, query, None)
        context = attend_by_scores(
            self._scores_of_whole(query, heads), heads["value"], is_causal=True
        )
        cache = continued(cache, _compared_keys(heads), heads["value"], real)
        return self._project_back(context), cache

    def attend_step(self, query, cache, index, ancestor_mask=None):
        """Attends from one new position to itself and the cached ones before it.

        Args:
            query: Tensor (batch, beams, features), the input at position `index`, the hypotheses
                of one source side by side; (batch, 1, features) without a beam search.
            cache: The cache with the positions before `index`.
            index: Position of the query, after a prompt counted from its end, int32: a scalar, or
                with one beam and a cache of a fixed length one for each sequence (batch,).
            ancestor_mask: Boolean (batch, 1, beams, slots), which slots belong to which
                hypothesis, this position included. May be left out with one beam.

        Returns:
            The output (batch, beams, features) and the cache with this position added.
        """
        query = ops.cast(query, self.compute_dtype)
        heads = self._project(query, query, None)
        position = query_position(cache, index)
        cache = cache.append(_compared_keys(heads), heads["value"], index)
        beams = query.shape[1]
        at_slot = slot_positions(cache, beams)
        # Behind a prompt there may be more empty slots than positions.
        at_slot = ops.where(at_slot <= position, at_slot, 0)
        heads |= {"key": cache.key, "value": cache.value}
        positions = ScoredPositions.of_queries(position, self.max_length)
        scores = self._scores(query, heads, positions, lambda scores: _of_columns(scores, at_slot))
        seen = visible_slots(cache, position, beams, ancestor_mask)
        context = attend_by_scores(
            scores, cache.value, mask=masks.combine_masks(*seen), every_query_attends=True
        )
        return self._project_back(context), cache

    def _scores_of_whole(self, query, heads) -> Any:
        """Scores of a sequence that begins at position 0 and attends to itself."""
        return self._scores(query, heads, ScoredPositions.of_sequence(ops.shape(query)[1]))

    def _require_length(self, shape) -> None:
        length = shape[1]
        require(
            length is None or length <= self.max_length,
            "The sequence must not be longer than `max_length`.",
            length=length,
            max_length=self.max_length,
        )

    def _scores_shape(self, query_shape, value_shape):
        return (query_shape[0], self.num_heads, query_shape[1], value_shape[1])

    def get_config(self):
        return super().get_config() | {
            "max_length": self.max_length,
            "dropout": self.dropout,
            "seed": self.seed,
        }


def _compared_keys(heads: dict) -> Any:
    """The keys that a cache holds, of width 0 where none are compared."""
    return heads.get("key", heads["value"][..., :0])


def _of_columns(scores: Any, columns: Any) -> Any:
    """Columns (1 or batch, slots) of scores (batch or 1, heads, target, max_length)."""
    if columns.shape[0] == 1:
        return ops.take(scores, columns[0], axis=-1)
    batch, slots = ops.shape(columns)
    rows = ops.shape(scores)[1:3]
    scores = ops.broadcast_to(scores, (batch, *rows, scores.shape[-1]))
    columns = ops.broadcast_to(ops.expand_dims(columns, (1, 2)), (batch, *rows, slots))
    return ops.take_along_axis(scores, columns, axis=-1)
