"""Attention inside a window."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import reads_masks
from keras_attn.layers.attention.capture import show_attention
from keras_attn.layers.attention.multi_head_base import (
    BaseMultiHeadAttention,
    require_no_scores,
    require_same_length,
)
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.layer_configs import deserialize_layers, serialize_layer
from keras_attn.layers.positions.relative_positions import DistanceBias, copy_positions
from keras_attn.ops import masks
from keras_attn.ops.decoding.window_state import (
    initial_window_state,
    local_attention_step,
    window_state,
)
from keras_attn.ops.local_attention import local_attention
from keras_attn.validation import require, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class LocalAttention(BaseMultiHeadAttention):
    """Multi-head self-attention to the positions nearby, in time and memory linear in the length.

    It computes what `MultiHeadAttention(sliding_window=…)` computes, block by block and without a
    matrix over all pairs, and decodes with a cache as long as the window. Masks hide keys from
    all queries alike, or the keys after a query (`use_causal_mask`).

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        sliding_window: A query attends to keys less than this many positions away: to
            `2 * sliding_window - 1` of them, or causally to `sliding_window`.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        relative_positions: Layer to build from what lets it see distances: `RotaryEmbedding`,
            `RelativePositionBias` or `AlibiBias`; none by default.
        **kwargs: Further arguments of `BaseMultiHeadAttention` (`value_dim`, `use_bias`,
            `output_shape`, initializers, regularizers, constraints) and of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, length, features), of the layer's compute dtype.
        value: Tensor (batch, length, features), as long as the query.
        key: Tensor (batch, length, features); `value` by default.
        query_mask: Boolean (batch, length), `False` where the query is padding.
        value_mask: Boolean (batch, length), `False` where the value is padding.
        key_mask: Boolean (batch, length), `False` where the key is padding.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        training: Whether dropout is applied.
        use_causal_mask: Whether a query attends only to keys up to its own position.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), lengths differ, scores are
            asked for, or an `attention_mask` differs between queries.

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
        require_rate(dropout=dropout)
        self.sliding_window = sliding_window
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if dropout else None
        self.relative_positions = copy_positions(
            relative_positions, num_heads, key_dim, self.dtype_policy
        )
        positions = self.relative_positions
        require(
            positions is None or not positions.adds_bias or isinstance(positions, DistanceBias),
            "A window can add to scores only what follows from distances.",
            relative_positions=type(positions).__name__,
        )

    def build(self, query_shape, value_shape=None, key_shape=None):
        require_same_length(self, query_shape, value=value_shape, key=key_shape)
        super().build(query_shape, value_shape, key_shape)
        if self.relative_positions is not None and not self.relative_positions.built:
            self.relative_positions.build(None)

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
        require_no_scores(self, return_attention_scores)
        inputs = self._visible(query, value, key, query_mask, value_mask, key_mask, attention_mask)
        heads = self._positioned(self._project(*inputs, training))
        context = self._attend(
            heads,
            key_mask=masks.mask_of_keys(ops.shape(value)[1], value_mask, key_mask, attention_mask),
            is_causal=use_causal_mask,
            query_mask=query_mask,
            dropout=self.dropout if training else 0.0,
        )
        return self._project_back(context, training)

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        """Makes the state before the first position: room for the keys and values of a window.

        Args:
            batch_size: Number of sequences, a number or a scalar int32 tensor.
            max_length: Not used.
            beams: Not used: a hypothesis has a state of its own.

        Returns:
            The state, a `keras_attn.ops.decoding.window_state.WindowState`.
        """
        widths = (self.key_dim, self.value_dim)
        return initial_window_state(
            batch_size, self.num_heads, self.sliding_window, widths, self.compute_dtype
        )

    def attend_prompt(self, query, cache, real):
        """Attends causally within a prompt, of which the state then holds a window.

        Args:
            query: Tensor (batch, length, features), the inputs at positions 0, 1, 2, …
            cache: Not used: what `initial_cache` made.
            real: Boolean (batch, length), which positions count: the first ones of each sequence.

        Returns:
            The output (batch, length, features), and the state after the last of these positions.
        """
        query = without_hidden(query, real)
        heads = self._positioned(self._project(query, query, None))
        output = self._project_back(self._attend(heads, is_causal=True))
        return output, window_state(heads["key"], heads["value"], self.sliding_window, real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        """Attends from one new position to itself and those before it.

        Args:
            query: Tensor (batch, beams, features), the input at position `index`, the hypotheses
                of one source side by side; (batch, 1, features) without a beam search.
            cache: The state after the positions before, with batch * beams rows.
            index: Position of the query, after a prompt counted from its end, int32: a scalar, or
                one for each row (batch * beams,).
            ancestor_mask: Not used.

        Returns:
            The output (batch, beams, features) and the state with this position.
        """
        heads = self._project_hypotheses(query)
        position = ops.reshape(ops.add(ops.cast(index, "int32"), cache.start), (-1, 1))  # (rows, 1)
        heads = self._moved(heads, position)
        bias = self._bias(self.sliding_window)
        context, cache = local_attention_step(
            heads["query"], heads["key"], heads["value"], cache, position, bias
        )
        return self._project_back_hypotheses(context, query.shape[1]), cache

    def _attend(self, heads, key_mask=None, is_causal=False, query_mask=None, dropout=0.0):
        attend = partial(
            local_attention,
            heads["query"],
            heads["key"],
            window=self.sliding_window,
            key_mask=key_mask,
            bias=self._bias(2 * self.sliding_window - 1),
            is_causal=is_causal,
        )
        context = attend(heads["value"], dropout=dropout, seed=self.seed_generator)
        facts = {"is_causal": is_causal, "pattern": {"window": self.sliding_window}}
        show_attention(self, attend, heads["value"], key_mask, query_mask, **facts)
        return masks.masked_queries(context, query_mask)

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

    def get_config(self):
        return super().get_config() | {
            "sliding_window": self.sliding_window,
            "dropout": self.dropout,
            "seed": self.seed,
            "relative_positions": serialize_layer(self.relative_positions),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**deserialize_layers(config, "relative_positions"))
