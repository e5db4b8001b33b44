"""Linear attention, as in "Transformers are RNNs"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps, SourceSteps
from keras_attn.layers.attention.capture import is_capturing, record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.positions.rotary import RotaryEmbedding
from keras_attn.ops import masks
from keras_attn.ops.linear_attention import (
    LinearState,
    attend_sums,
    initial_linear_state,
    linear_attention,
    linear_attention_step,
    sums_of_keys,
)
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class LinearAttention(DecodingSteps, SourceSteps, BaseMultiHeadAttention):
    """Multi-head attention in time and memory linear in the lengths.

    A query's weight for a key is φ(query)·φ(key) with φ(x) = elu(x) + 1, divided by the sum of
    these weights. So keys and values can be summed up once for all queries, and decoding needs
    a state of constant size. Masks hide keys from all queries alike, or the keys after a query
    (`use_causal_mask`); there is no mask between pairs, for there are no scores.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        relative_positions: `RotaryEmbedding` that makes self-attention depend on distances:
            it turns φ(query) and φ(key) where they weight values, not in the divisor; none by
            default.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        attention_mask: Boolean (batch, 1, source) or (batch, heads or 1, 1, source), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        training: Has no effect.

    Returns:
        The output (batch, target, features).

    Raises:
        UserError: A size is not positive, the relative positions are others, scores are asked for,
            or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LinearAttention(2, 4)(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    References:
        Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, sections 3.2 to 3.4.
        Su et al., 2021, https://arxiv.org/abs/2104.09864, section 3.3 (rotary positions).
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
            "LinearAttention takes a RotaryEmbedding for `relative_positions`: there are no scores "
            "to add to.",
            relative_positions=type(relative_positions).__name__,
        )
        self._set_positions(relative_positions)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        mask = inputs.mask_of_keys()
        attend = partial(
            linear_attention,
            heads["query"],
            heads["key"],
            key_mask=mask,
            is_causal=use_causal_mask,
            **self._turns(heads),
        )
        recorded = {"inputs": inputs, "is_causal": use_causal_mask, "is_softmax": False}
        return self._attend_by_keys(
            attend, heads["value"], mask, inputs.query_mask, training, **recorded
        )

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        return initial_linear_state(
            batch_size, self.num_heads, self.key_dim, self.value_dim, self.compute_dtype
        )

    def attend_prompt(self, query, cache, real):
        heads = self._project_prompt(query, real)
        key, value, turns = heads["key"], heads["value"], self._turns(heads)
        context = linear_attention(heads["query"], key, value, is_causal=True, **turns)
        real = ops.cast(real, "bool")
        sums = cache.sums + sums_of_keys(
            key, value, ops.expand_dims(real, 1), turns.get("turn_key")
        )
        start = cache.start + ops.sum(ops.cast(real, "int32"), axis=1)
        return self._project_back(context), LinearState(sums, start)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project_hypotheses(query)
        turn = None
        if self.relative_positions is not None:
            turn = self._turn(ops.reshape(ops.cast(index, "int32") + cache.start, (-1, 1)))
        context, cache = linear_attention_step(
            heads["query"], heads["key"], heads["value"], cache, turn
        )
        return self._project_back_hypotheses(context, query.shape[1]), cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        value, key, value_mask = self._visible_source(value, key, value_mask)
        heads = self._project(None, value, key)
        mask = masks.mask_of_keys(ops.shape(value)[1], value_mask)
        source = {"sums": sums_of_keys(heads["key"], heads["value"], mask)}
        # Weights cannot be recorded from sums.
        return source | ({"heads": heads, "mask": mask} if is_capturing() else {})

    def attend_source(self, query, source: dict):
        heads = self._project(query, None, None)
        if "heads" in source:
            key, value, mask = source["heads"]["key"], source["heads"]["value"], source["mask"]
            attend = partial(linear_attention, heads["query"], key, key_mask=mask)
            record_attention(self, attend, value, mask, crosses=True, is_softmax=False)
        return self._project_back(attend_sums(heads["query"], source["sums"]))

    def _turns(self, heads) -> dict:
        """Rotations of queries and keys of whole sequences; the last query is at the last key.

        Args:
            heads: The heads by role.

        Returns:
            Arguments of `linear_attention`, none without relative positions.
        """
        if self.relative_positions is None:
            return {}
        target, source = ops.shape(heads["query"])[2], ops.shape(heads["key"])[2]
        at_query = ops.arange(target, dtype="int32") + (source - target)
        at_key = ops.arange(source, dtype="int32")
        return {"turn_query": self._turn(at_query), "turn_key": self._turn(at_key)}

    def _turn(self, positions):
        # Its `call` alone: features stay as wide as sums are.
        return partial(self.relative_positions.call, positions=positions)
