"""Multiplicative attention, as in "Effective Approaches to Attention-based NMT"."""

import keras

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.ops.scores import additive_scores, dot_scores
from keras_attn.validation import require, require_one_of, require_positive

SCORES = ("dot", "general", "concat")


@keras.saving.register_keras_serializable(package="keras_attn")
class LuongAttention(BaseSingleHeadAttention):
    """Luong's global attention: scores by products of query and key, or by a small network.

    In an RNN decoder the query is the state of the step itself, and the context is joined with it
    afterwards.

    Args:
        score: `"dot"`: queryᵀ key; `"general"`: queryᵀ W key; `"concat"`: vᵀ tanh(W [query; key]).
        units: Size of v, for `"concat"`; that of the query by default.
        kernel_initializer: Initializer of W and v.
        **kwargs: Further arguments of `BaseSingleHeadAttention`.

    Raises:
        UserError: `score` is unknown, `units` is given without `"concat"` or not positive,
            `dropout` is outside [0, 1), or `"dot"` is given a query and a key of different sizes.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LuongAttention("general")(x, x).shape
        (2, 5, 8)

    Reference:
        Luong et al., 2015, https://arxiv.org/abs/1508.04025, section 3.1.
    """

    def __init__(
        self,
        score: str = "dot",
        units: int | None = None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_one_of("score", score, SCORES)
        if units is not None:
            require(score == "concat", "`units` is for the score concat.", units=units, score=score)
            require_positive(units=units)
        self.score = score
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def _build_comparison(self, query_dim, key_dim):
        if self.score == "dot":
            require(
                query_dim == key_dim,
                "The score dot needs a query and a key of the same size.",
                query_features=query_dim,
                key_features=key_dim,
            )
            return key_dim
        if self.score == "general":
            self.key_projection = self._projection("key", key_dim, query_dim, 0)
            return query_dim
        units = self.units or query_dim
        # W of the two side by side is one matrix for each.
        self._additive_weights(query_dim, key_dim, units)
        return units

    def _compared_query(self, query):
        return self.query_projection(query) if self.score == "concat" else query

    def _compared_key(self, key):
        return key if self.score == "dot" else self.key_projection(key)

    def _scores(self, query, key):
        if self.score == "concat":
            return additive_scores(query, key, self.scale)
        return dot_scores(query, key)
