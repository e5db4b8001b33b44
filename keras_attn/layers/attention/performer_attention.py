"""Softmax attention estimated by random features, as in "Rethinking Attention with Performers"."""

import math
import random

import keras
from keras import ops

from keras_attn.layers.attention.feature_map_base import BaseFeatureMapAttention
from keras_attn.ops.random_features import key_features, query_features, random_directions
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class PerformerAttention(BaseFeatureMapAttention):
    """Multi-head attention that estimates the softmax in time and memory linear in the lengths.

    The exponential of a query's and a key's scaled product is the mean of products of positive
    random features (FAVOR+), so keys and values can be summed up once for all queries, and decoding
    needs a state of constant size. The estimate has no bias; its error falls with the number of
    features and grows quickly with the length of queries and keys. The random directions are
    orthogonal and weights that are not trained, so that a saved layer computes what it computed.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        num_features: Number of random features; by default `key_dim` times its natural logarithm,
            rounded up, and at least `key_dim`.
        seed: Seed of the random features, a whole number.
        relative_positions: `RotaryEmbedding` that makes self-attention depend on distances: it
            turns queries and keys, as in dense attention; none by default.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Returns:
        The output (batch, target, features).

    Raises:
        UserError: A size is not positive, the relative positions are others, scores are asked for,
            or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> PerformerAttention(2, 4, num_features=16)(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    Reference:
        Choromanski et al., 2020, https://arxiv.org/abs/2009.14794, sections 2.3 and 2.4.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_features: int | None = None,
        seed: int | None = None,
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, relative_positions, **kwargs)
        if num_features is not None:
            require_positive(num_features=num_features)
        self.num_features = num_features
        self.seed = seed

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        seed = random.randrange(2**31) if self.seed is None else self.seed
        self.directions = self.add_weight(
            name="directions",
            shape=(self.key_dim, self._num_features),
            initializer=lambda shape, dtype: ops.cast(random_directions(*shape, seed), dtype),
            trainable=False,
            autocast=False,
        )

    @property
    def _num_features(self):
        of_size = math.ceil(self.key_dim * max(1.0, math.log(self.key_dim)))
        return self.num_features or of_size

    def _query_features(self, query):
        return query_features(query, self.directions)

    def _key_features(self, key):
        return key_features(key, self.directions)

    def _featured(self, heads, positions):
        query, key = heads["query"], heads["key"]
        if self.relative_positions is not None:
            query, key = self.relative_positions.transform(query, key, *positions)
        return self._query_features(query), self._key_features(key), {}
