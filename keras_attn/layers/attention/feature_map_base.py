"""Base of the mechanisms that sum keys up as features instead of comparing them with queries."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps, SourceSteps
from keras_attn.layers.attention.capture import is_capturing, record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.positions.rotary import RotaryEmbedding
from keras_attn.ops import masks
from keras_attn.ops.linear_attention import (
    Features,
    LinearState,
    attend_sums,
    initial_linear_state,
    linear_attention,
    linear_attention_step,
    sums_of_keys,
)
from keras_attn.tensors import Tensor
from keras_attn.validation import require


class BaseFeatureMapAttention(DecodingSteps, SourceSteps, BaseMultiHeadAttention):
    """Weights values by products of positive features of queries and keys.

    A subclass chooses the features (`_query_features`, `_key_features`, `_num_features`), and where
    positions turn them (`_featured`).

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        relative_positions: `RotaryEmbedding` that makes self-attention depend on distances; none by
            default.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        attention_mask: Boolean (batch, 1, source) or (batch, heads or 1, 1, source), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        training: Has no effect.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require(
            relative_positions is None or isinstance(relative_positions, RotaryEmbedding),
            f"{type(self).__name__} takes a RotaryEmbedding for `relative_positions`: there are no "
            "scores to add to.",
            relative_positions=type(relative_positions).__name__,
        )
        self._set_positions(relative_positions)

    @property
    def _num_features(self) -> int:
        """Number of a key's features."""
        raise NotImplementedError

    def _query_features(self, query: Tensor) -> Any:
        """Positive features of queries (batch, heads, target, features)."""
        raise NotImplementedError

    def _key_features(self, key: Tensor) -> Features:
        """Positive features of keys."""
        raise NotImplementedError

    def _featured(self, heads: dict, positions: tuple) -> tuple[Any, Features, dict]:
        """Features of queries and keys of one sequence or two.

        Args:
            heads: The heads by role.
            positions: Those of the queries and of the keys, int32 (length,) or (batch, 1).

        Returns:
            The features of the queries, those of the keys, and `turn_query` and `turn_key` of
            `keras_attn.ops.linear_attention`, where there are any.
        """
        raise NotImplementedError

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        mask = inputs.mask_of_keys()
        query, key, turns = self._featured(heads, _positions(heads))
        attend = partial(
            linear_attention, query, key, key_mask=mask, is_causal=use_causal_mask, **turns
        )
        recorded = {"inputs": inputs, "is_causal": use_causal_mask, "is_softmax": False}
        return self._attend_by_keys(
            attend, heads["value"], mask, inputs.query_mask, training, **recorded
        )

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        return initial_linear_state(
            batch_size, self.num_heads, self._num_features, self.value_dim, self.compute_dtype
        )

    def attend_prompt(self, query, cache, real):
        heads = self._project_prompt(query, real)
        query, key, turns = self._featured(heads, _positions(heads))
        context = linear_attention(query, key, heads["value"], is_causal=True, **turns)
        real = ops.cast(real, "bool")
        mask, turn_key = ops.expand_dims(real, 1), turns.get("turn_key")
        sums = sums_of_keys(key, heads["value"], mask, turn_key)
        sums = cache.sums.with_others(sums, key.log_scale is not None)
        start = cache.start + ops.sum(ops.cast(real, "int32"), axis=1)
        return self._project_back(context), LinearState(sums, start)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project_hypotheses(query)
        position = ops.reshape(ops.cast(index, "int32") + cache.start, (-1, 1))
        of_query, key, turns = self._featured(heads, (position, position))
        context, cache = linear_attention_step(
            of_query, key, heads["value"], cache, turns.get("turn_key")
        )
        return self._project_back_hypotheses(context, query.shape[1]), cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        value, key, value_mask = self._visible_source(value, key, value_mask)
        heads = self._project(None, value, key)
        mask = masks.mask_of_keys(ops.shape(value)[1], value_mask)
        key = self._key_features(heads["key"])
        source = {"sums": sums_of_keys(key, heads["value"], mask).sums}
        if is_capturing():  # weights cannot be recorded from sums
            source |= {"key": key, "value": heads["value"], "mask": mask}
        return source

    def attend_source(self, query, source: dict):
        heads = self._project(query, None, None)
        features = self._query_features(heads["query"])
        if "key" in source:
            value, mask = source["value"], source["mask"]
            attend = partial(linear_attention, features, source["key"], key_mask=mask)
            record_attention(self, attend, value, mask, crosses=True, is_softmax=False)
        context = ops.cast(attend_sums(features, source["sums"]), self.compute_dtype)
        return self._project_back(context)


def _positions(heads: dict) -> tuple:
    """Positions of queries and keys of whole sequences."""
    target, source = ops.shape(heads["query"])[2], ops.shape(heads["key"])[2]
    at_query = ops.arange(target, dtype="int32") + (source - target)
    return at_query, ops.arange(source, dtype="int32")
