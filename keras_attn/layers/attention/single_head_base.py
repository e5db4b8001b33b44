"""What mechanisms with one head have in common: scores, of which each has its own."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import reads_masks, require_attention_inputs
from keras_attn.layers.attention.capture import is_other, show_attention
from keras_attn.layers.attention.multi_head_base import require_sequences
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float, visible_inputs, without_hidden
from keras_attn.layers.positions.relative_positions import refuse_relative_positions
from keras_attn.ops import masks
from keras_attn.ops.attention import attend_by_scores
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    visible_slots,
)
from keras_attn.validation import require_rate


class BaseSingleHeadAttention(CompositeLayer):
    """Averages values by the softmax of scores between query and key.

    A subclass says what of queries and keys is compared (`_compared_query`, `_compared_key`), and
    how (`_scores`).

    Args:
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, dropout: float = 0.0, seed: int | None = None, **kwargs):
        super().__init__(**refuse_relative_positions(self, kwargs))
        require_rate(dropout=dropout)
        self.supports_masking = True
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if dropout else None

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the weights.

        Args:
            query_shape: Shape of the query.
            value_shape: Shape of the value; that of the query by default.
            key_shape: Shape of the key; that of the value by default.
        """
        require_sequences(query=query_shape, value=value_shape, key=key_shape)
        value_shape = query_shape if value_shape is None else value_shape
        key_shape = value_shape if key_shape is None else key_shape
        compared = self._build_comparison(query_shape[-1], key_shape[-1])
        self._cached_widths = (compared, value_shape[-1])

    def _build_comparison(self, query_dim: int, key_dim: int) -> int:
        """Creates the weights for the features of query and key; gives the compared key's size."""
        raise NotImplementedError

    def _compared_query(self, query: Any) -> Any:
        return query

    def _compared_key(self, key: Any) -> Any:
        return key

    def _scores(self, query: Any, key: Any) -> Any:
        """Scores (batch, target, source), float32 or wider, of what is compared."""
        raise NotImplementedError

    def _require_inputs(self, *inputs):
        require_attention_inputs(*inputs)

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
        crosses = is_other(query, value)
        query, value, key = visible_inputs(
            self.compute_dtype, query, value, key, query_mask, value_mask, key_mask, attention_mask
        )
        mask = masks.separate_masks(query_mask, value_mask, key_mask, attention_mask)
        key = self._compared_key(value if key is None else key)
        attend = partial(
            attend_by_scores,
            ops.expand_dims(self._scores(self._compared_query(query), key), 1),
            mask=masks.combine_masks(*mask),
            is_causal=use_causal_mask,
        )
        result = attend(
            ops.expand_dims(value, 1),
            dropout=self.dropout if training else 0.0,
            seed=self.seed_generator,
            return_scores=return_attention_scores,
        )
        facts = {"crosses": crosses, "is_causal": use_causal_mask}
        show_attention(self, attend, ops.expand_dims(value, 1), mask, **facts)
        if not return_attention_scores:
            return result[:, 0]
        return tuple(part[:, 0] for part in result)

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        """Makes the empty cache of self-attention for decoding, to be filled by `attend_step`.

        Args:
            batch_size: Number of sequences, or of sources of which several hypotheses are
                decoded; a number or a scalar int32 tensor.
            max_length: Number of positions the cache can hold, as JAX and XLA need it; `None`,
                on TensorFlow without XLA, for a cache that grows.
            beams: Number of hypotheses of each source.

        Returns:
            The cache, of what is compared of the keys and of the values: see
            `keras_attn.ops.decoding.cache`.
        """
        widths = self._cached_widths
        return initial_cache(batch_size, 1, widths, self.compute_dtype, max_length, beams)

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
        """
        query = without_hidden(ops.cast(query, self.compute_dtype), real)
        key, value = ops.expand_dims(self._compared_key(query), 1), ops.expand_dims(query, 1)
        scores = ops.expand_dims(self._scores(self._compared_query(query), key[:, 0]), 1)
        context = attend_by_scores(scores, value, is_causal=True)
        return context[:, 0], continued(cache, key, value, real)

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
        position = query_position(cache, index)
        cache = cache.append(
            ops.expand_dims(self._compared_key(query), 1), ops.expand_dims(query, 1), index
        )
        seen = visible_slots(cache, position, query.shape[1], ancestor_mask)
        source = {"key": cache.key[:, 0], "value": cache.value[:, 0]}
        return self._attend_source(query, source, masks.combine_masks(*seen))[0], cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        """Computes what is compared of a source once, for every step of decoding.

        Args:
            value: Tensor (batch, source, features).
            key: Tensor (batch, source, features); `value` by default.
            value_mask: Boolean (batch, source), `False` where the source is padding.

        Returns:
            `{"key": (batch, source, compared features), "value": …, "mask": …}`, of which "mask",
            boolean (batch, 1, 1, source), is there where `value_mask` is given.
        """
        value_mask, valid = masks.boolean_masks(value_mask=value_mask)
        value = masks.unless_refused(value, valid)
        value, key = (
            x if x is None else without_hidden(as_float(x, self.compute_dtype), value_mask)
            for x in (value, key)
        )
        source = {"key": self._compared_key(value if key is None else key), "value": value}
        if value_mask is None:
            return source
        # Nothing of padding is left, so that a source of nothing else has a context of zeros.
        kept = ops.cast(ops.expand_dims(value_mask, -1), value.dtype)
        return source | {
            "value": ops.multiply(value, kept),
            "mask": ops.expand_dims(value_mask, (1, 2)),
        }

    def attend_source(self, query, source: dict, return_attention_scores=False):
        """Attends to a source projected by `project_source`.

        Args:
            query: Tensor (batch, target, features). Where several hypotheses share a source,
                they stand side by side along `target`.
            source: What `project_source` returned.
            return_attention_scores: Whether to return the attention probabilities too.

        Returns:
            The output (batch, target, features), and where they are asked for the probabilities
            (batch, target, source).
        """
        found = self._attend_source(query, source, source.get("mask"), return_attention_scores)
        return found if return_attention_scores else found[0]

    def _attend_source(self, query, source, mask, return_scores=False) -> tuple:
        scores = self._scores(self._compared_query(query), source["key"])
        attend = partial(
            attend_by_scores, ops.expand_dims(scores, 1), mask=mask, every_query_attends=True
        )
        found = attend(ops.expand_dims(source["value"], 1), return_scores=return_scores)
        show_attention(self, attend, ops.expand_dims(source["value"], 1), mask, crosses=True)
        return tuple(part[:, 0] for part in (found if return_scores else (found,)))

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return (*query_shape[:-1], (value_shape or query_shape)[-1])

    def compute_output_spec(
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
        self._require_inputs(query, value, key, query_mask, value_mask, key_mask, attention_mask)
        shape = self.compute_output_shape(query.shape, value.shape)
        output = keras.KerasTensor(shape, self.compute_dtype)
        if not return_attention_scores:
            return output
        scores = (*query.shape[:2], value.shape[1])
        return output, keras.KerasTensor(scores, self.compute_dtype)

    def get_config(self):
        return super().get_config() | {"dropout": self.dropout, "seed": self.seed}
