"""Attention inside a window."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.positions.distance_biases import DistanceBias
from keras_attn.ops.decoding.window_state import (
    initial_window_state,
    local_attention_step,
    window_state,
)
from keras_attn.ops.local_attention import local_attention
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LocalAttention(DecodingSteps, BaseMultiHeadAttention):
    """Multi-head self-attention to the positions nearby, in time and memory linear in the length.

    It computes what `MultiHeadAttention(sliding_window=…)` computes, block by block and without a
    matrix over all pairs, and decodes with a cache as long as the window. Masks hide keys from
    all queries alike, or the keys after a query (`use_causal_mask`).

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        sliding_window: A query attends to keys less than this many positions away: to
            `2 * sliding_window - 1` of them, or causally to `sliding_window`.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        relative_positions: Layer that makes attention depend on distances: `RotaryEmbedding`,
            `RelativePositionBias` or `AlibiBias`; none by default.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), lengths differ, scores are
            asked for, or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LocalAttention(2, 4, sliding_window=2)(x, x).shape
        (2, 5, 8)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 4 (restricted
        self-attention).
        Beltagy et al., 2020, https://arxiv.org/abs/2004.05150, section 3.1.
    """

    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        sliding_window: int,
        dropout: float = 0.0,
        seed: int | None = None,
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(sliding_window=sliding_window)
        self.sliding_window = sliding_window
        self._set_dropout(dropout, seed)
        self._set_positions(relative_positions)
        positions = self.relative_positions
        require(
            positions is None or not positions.adds_bias or isinstance(positions, DistanceBias),
            "A window can add to scores only what follows from distances.",
            relative_positions=type(positions).__name__,
        )

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        heads = self._positioned(self._project(*inputs.visible(self.compute_dtype), training))
        masks = (inputs.mask_of_keys(), inputs.query_mask)
        dropping = self._dropping(training)
        return self._attend_heads(heads, use_causal_mask, *masks, training, dropping)

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        widths = (self.key_dim, self.value_dim)
        return initial_window_state(
            batch_size, self.num_heads, self.sliding_window, widths, self.compute_dtype
        )

    def attend_prompt(self, query, cache, real):
        heads = self._positioned(self._project_prompt(query, real))
        output = self._attend_heads(heads, is_causal=True)
        return output, window_state(heads["key"], heads["value"], self.sliding_window, real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project_hypotheses(query)
        position = ops.reshape(ops.add(ops.cast(index, "int32"), cache.start), (-1, 1))  # (rows, 1)
        heads = self._moved(heads, position)
        bias = self._bias(self.sliding_window)
        context, cache = local_attention_step(
            heads["query"], heads["key"], heads["value"], cache, position, bias
        )
        return self._project_back_hypotheses(context, query.shape[1]), cache

    def _attend_heads(self, heads, is_causal, key_mask=None, *options):
        attend = partial(
            local_attention,
            heads["query"],
            heads["key"],
            window=self.sliding_window,
            key_mask=key_mask,
            bias=self._bias(2 * self.sliding_window - 1),
            is_causal=is_causal,
        )
        return self._attend_by_keys(attend, heads["value"], key_mask, *options, is_causal=is_causal)

    def _positioned(self, heads) -> dict:
        """Heads of a sequence that begins at position 0."""
        return self._moved(heads, ops.arange(ops.shape(heads["query"])[2], dtype="int32"))

    def _moved(self, heads, positions) -> dict:
        if self.relative_positions is None:
            return heads
        query, key = heads["query"], heads["key"]
        query, key = self.relative_positions.transform(query, key, positions, positions)
        return heads | {"query": query, "key": key}

    def _bias(self, keys):
        """What the distances of that many keys add, from the farthest before a query on."""
        if self.relative_positions is None:
            return None
        at_query = ops.full((1,), self.sliding_window - 1, dtype="int32")
        at_keys = ops.arange(keys, dtype="int32")
        return self.relative_positions.bias(None, at_query, at_keys)
