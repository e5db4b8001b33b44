"""Base of the synthesizers: attention whose scores come from the query alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.attention.synthesizer_scores import (
    DenseScores,
    ScoredPositions,
    SynthesizedScores,
)
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.ops.attention import attend_by_scores
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    slot_positions,
    visible_slots,
)
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


class SynthesizerAttention(DecodingSteps, BaseMultiHeadAttention):
    """Averages the heads' values by the softmax of synthesized scores.

    A subclass makes `self.scores`, one of `keras_attn.layers.attention.synthesizer_scores`, or
    computes other scores (`_scores`).

    Args:
        num_heads: Number of heads.
        key_dim: Size inside each head, and of its value unless `value_dim` is given.
        max_length: Greatest length.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        key: Not used.

    Returns:
        The output (batch, length, features), and with `return_attention_scores` the probabilities
        (batch, num_heads, length, length).
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
        self.max_length = max_length
        self._set_dropout(dropout, seed)

    def _made(self, kind: type, *arguments: Any, name: str = "scores") -> SynthesizedScores:
        return kind(self.num_heads, *arguments, name=name, dtype=self.dtype_policy)

    def _made_dense(self, initializer: Any, factor: int | None = None, name: str = "scores") -> Any:
        """Dense scores, factorized where a `factor` is given."""
        sizes = (self.key_dim, self.max_length)
        return self._made(DenseScores, *sizes, self.use_bias, initializer, factor, name=name)

    def build(self, query_shape, value_shape=None, key_shape=None):
        self._require_length(query_shape)
        super().build(query_shape, value_shape, key_shape)
        self._build_scores(query_shape)

    def _build_scores(self, query_shape) -> None:
        self.scores.build(query_shape)

    def _head_sizes(self):
        return {"value": (self.num_heads, self.value_dim)}

    def _scores(
        self,
        query: Tensor,
        heads: dict,
        positions: ScoredPositions,
        columns: Callable[[Any], Any] = lambda scores: scores,
    ) -> Any:
        """Scores (batch or 1, heads, target, source), float32 or wider.

        Args:
            query: Tensor (batch, target, features).
            heads: Its heads, and those of the source, by role.
            positions: Those of the queries, and of the synthesized scores.
            columns: Takes the source's (..., source) of those synthesized.
        """
        return columns(self.scores(query, positions=positions))

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        query, value, key = inputs.visible(self.compute_dtype)
        self._require_length(query.shape)
        heads = self._project(query, value, key, training)
        scores = self._scores_of_whole(query, heads)
        dropping = self._dropping(training)
        if dropping["dropout"] or return_attention_scores:  # which each sequence has of its own
            scores = ops.broadcast_to(scores, (ops.shape(query)[0], *ops.shape(scores)[1:]))
        mask = inputs.pair_masks()
        attend = partial(attend_by_scores, scores, mask=mask, is_causal=use_causal_mask)
        result = attend(heads["value"], return_scores=return_attention_scores, **dropping)
        record_attention(self, attend, heads["value"], mask, is_causal=use_causal_mask)
        if not return_attention_scores:
            return self._project_back(result, training)
        context, probabilities = result
        return self._project_back(context, training), probabilities

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
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
        self._require_length(query.shape)
        query = without_hidden(ops.cast(query, self.compute_dtype), real)
        heads = self._project(query, query, None)
        context = attend_by_scores(
            self._scores_of_whole(query, heads), heads["value"], is_causal=True
        )
        cache = continued(cache, _compared_keys(heads), heads["value"], real)
        return self._project_back(context), cache

    def attend_step(self, query, cache, index, ancestor_mask=None):
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
        context = attend_by_scores(scores, cache.value, mask=seen, every_query_attends=True)
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


def _compared_keys(heads: dict) -> Any:
    """The keys that a cache holds, of width 0 where none are compared."""
    return heads.get("key", heads["value"][..., :0])


def _of_columns(scores: Tensor, columns: Tensor) -> Any:
    """Columns (1 or batch, slots) of scores (batch or 1, heads, target, max_length)."""
    if columns.shape[0] == 1:
        return ops.take(scores, columns[0], axis=-1)
    batch, slots = ops.shape(columns)
    rows = ops.shape(scores)[1:3]
    scores = ops.broadcast_to(scores, (batch, *rows, scores.shape[-1]))
    columns = ops.broadcast_to(ops.expand_dims(columns, (1, 2)), (batch, *rows, slots))
    return ops.take_along_axis(scores, columns, axis=-1)
