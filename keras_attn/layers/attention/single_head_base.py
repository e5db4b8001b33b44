"""Base class of mechanisms with one head, which differ in their scores."""

from functools import partial
from typing import Any

from keras import ops

from keras_attn.layers.attention.attention_layer import AttentionLayer, DecodingSteps, SourceSteps
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.dense import Dense, built_dense
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops import masks
from keras_attn.ops.attention import attend_by_scores
from keras_attn.ops.decoding.cache import continued, initial_cache, query_position, visible_slots
from keras_attn.tensors import Tensor


class BaseSingleHeadAttention(DecodingSteps, SourceSteps, AttentionLayer):
    """Averages values by the softmax of scores between query and key.

    A subclass chooses what of queries and keys is compared (`_compared_query`, `_compared_key`),
    and how (`_scores`).

    Args:
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        attention_mask: Boolean (batch, target, source), `True` where a query may attend to a key.

    Returns:
        The context (batch, target, value's features), and with `return_attention_scores` the
        probabilities (batch, target, source).
    """

    def __init__(self, dropout: float = 0.0, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the weights.

        Args:
            query_shape: Shape of the query.
            value_shape: Shape of the value; that of the query by default.
            key_shape: Shape of the key; that of the value by default.
        """
        self._require_shapes(query=query_shape, value=value_shape, key=key_shape)
        value_shape = query_shape if value_shape is None else value_shape
        key_shape = value_shape if key_shape is None else key_shape
        compared = self._build_comparison(query_shape[-1], key_shape[-1])
        self._cached_widths = (compared, value_shape[-1])

    def _projection(self, name: str, features: int, units: int, offset: int) -> Dense:
        initializer = separate_initializer(self.kernel_initializer, offset)
        options = {"kernel_initializer": initializer, "dtype": self.dtype_policy}
        return built_dense(features, units, name=name, **options)

    def _additive_weights(self, query_dim: int, key_dim: int, units: int) -> None:
        """W and U, by which query and key are projected before they are added, and v."""
        self.query_projection = self._projection("query", query_dim, units, 0)
        self.key_projection = self._projection("key", key_dim, units, 1)
        initializer = separate_initializer(self.kernel_initializer, 2)
        self.scale = self.add_weight(name="scale", shape=(units, 1), initializer=initializer)

    def _build_comparison(self, query_dim: int, key_dim: int) -> int:
        """Creates the weights for the features of query and key; gives the compared key's size."""
        raise NotImplementedError

    def _compared_query(self, query: Tensor) -> Any:
        return query

    def _compared_key(self, key: Tensor) -> Any:
        return key

    def _scores(self, query: Tensor, key: Tensor) -> Any:
        """Scores (batch, target, source), float32 or wider, of what is compared."""
        raise NotImplementedError

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        query, value, key = inputs.visible(self.compute_dtype)
        key = self._compared_key(value if key is None else key)
        mask = inputs.pair_masks()
        attend = partial(
            attend_by_scores,
            ops.expand_dims(self._scores(self._compared_query(query), key), 1),
            mask=mask,
            is_causal=use_causal_mask,
        )
        value = ops.expand_dims(value, 1)
        result = attend(value, return_scores=return_attention_scores, **self._dropping(training))
        record_attention(self, attend, value, mask, inputs, is_causal=use_causal_mask)
        return tuple(part[:, 0] for part in result) if return_attention_scores else result[:, 0]

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        widths = self._cached_widths
        return initial_cache(batch_size, 1, widths, self.compute_dtype, max_length, beams)

    def attend_prompt(self, query, cache, real):
        query = without_hidden(ops.cast(query, self.compute_dtype), real)
        key, value = ops.expand_dims(self._compared_key(query), 1), ops.expand_dims(query, 1)
        scores = ops.expand_dims(self._scores(self._compared_query(query), key[:, 0]), 1)
        context = attend_by_scores(scores, value, is_causal=True)
        return context[:, 0], continued(cache, key, value, real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        query = ops.cast(query, self.compute_dtype)
        position = query_position(cache, index)
        cache = cache.append(
            ops.expand_dims(self._compared_key(query), 1), ops.expand_dims(query, 1), index
        )
        seen = visible_slots(cache, position, query.shape[1], ancestor_mask)
        source = {"key": cache.key[:, 0], "value": cache.value[:, 0]}
        return self._attend_source(query, source, masks.combine_masks(*seen))[0], cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        value, key, value_mask = self._visible_source(value, key, value_mask)
        source = {"key": self._compared_key(value if key is None else key), "value": value}
        return self._masked_source(source, value_mask, (-1,))

    def attend_source(self, query, source: dict, return_attention_scores=False):
        """Attends to a source projected by `project_source`.

        Args:
            query: Tensor (batch, target, features). Several hypotheses of one source are side by
                side along `target`.
            source: The result of `project_source`.
            return_attention_scores: Whether to return the attention probabilities too.

        Returns:
            The output (batch, target, features), and with `return_attention_scores` the
            probabilities (batch, target, source).
        """
        found = self._attend_source(query, source, source.get("mask"), return_attention_scores)
        return found if return_attention_scores else found[0]

    def _attend_source(self, query, source, mask, return_scores=False) -> tuple:
        scores = self._scores(self._compared_query(query), source["key"])
        attend = partial(
            attend_by_scores, ops.expand_dims(scores, 1), mask=mask, every_query_attends=True
        )
        value = ops.expand_dims(source["value"], 1)
        found = attend(value, return_scores=return_scores)
        record_attention(self, attend, value, mask, crosses=True)
        return tuple(part[:, 0] for part in (found if return_scores else (found,)))

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return (*query_shape[:-1], (value_shape or query_shape)[-1])

    def _scores_shape(self, query_shape, value_shape):
        return (*query_shape[:2], value_shape[1])
