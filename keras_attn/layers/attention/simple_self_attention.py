"""Self-attention without parameters."""

import keras

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.ops.scores import dot_scores
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class SimpleSelfAttention(BaseSingleHeadAttention):
    """Averages a sequence by the softmax of its own products: softmax(x xᵀ) x.

    What remains of self-attention without projections and heads: nothing is learned.

    Args:
        use_scale: Whether the products are divided by the square root of the number of features.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, target, features), of the layer's compute dtype.
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features); `value` by default.
        query_mask: Boolean (batch, target), `False` where the query is padding.
        value_mask: Boolean (batch, source), `False` where the value is padding.
        key_mask: Boolean (batch, source), `False` where the key is padding.
        attention_mask: Boolean (batch, target, source), `True` where a query may attend to a key.
        return_attention_scores: Whether to return the attention probabilities too.
        training: Whether dropout is applied.
        use_causal_mask: Whether a query attends only to keys up to its own position, the last
            query standing at the last key.

    Returns:
        The context (batch, target, value's features), and with `return_attention_scores` the
        probabilities (batch, target, source).

    Raises:
        UserError: `dropout` is outside [0, 1), or query and key have different sizes.

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.2.1, of which it is the
        case of one head and projections that change nothing.
    """

    def __init__(
        self, use_scale: bool = False, dropout: float = 0.0, seed: int | None = None, **kwargs
    ):
        super().__init__(dropout=dropout, seed=seed, **kwargs)
        self.use_scale = use_scale

    def _build_comparison(self, query_dim, key_dim):
        require(
            query_dim == key_dim,
            "Products need a query and a key of the same size.",
            query_features=query_dim,
            key_features=key_dim,
        )
        return key_dim

    def _scores(self, query, key):
        scores = dot_scores(query, key)
        return scores * self._cached_widths[0] ** -0.5 if self.use_scale else scores

    def get_config(self):
        return super().get_config() | {"use_scale": self.use_scale}
