"""Linear attention, as in "Transformers are RNNs"."""

from functools import partial

import keras

from keras_attn.layers.attention.feature_map_base import BaseFeatureMapAttention
from keras_attn.ops.linear_attention import Features, elu_features


@keras.saving.register_keras_serializable(package="keras_attn")
class LinearAttention(BaseFeatureMapAttention):
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

    @property
    def _num_features(self):
        return self.key_dim

    def _query_features(self, query):
        return elu_features(query)

    def _key_features(self, key):
        return Features(elu_features(key))

    def _featured(self, heads, positions):
        query, key = self._query_features(heads["query"]), self._key_features(heads["key"])
        if self.relative_positions is None:
            return query, key, {}
        # Its `call` alone: features stay as wide as sums are.
        turns = [partial(self.relative_positions.call, positions=at) for at in positions]
        return query, key, dict(zip(("turn_query", "turn_key"), turns, strict=True))
