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
        **kwargs: Further arguments of `BaseSingleHeadAttention`.

    Raises:
        UserError: `dropout` is outside [0, 1), or query and key have different sizes.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SimpleSelfAttention()(x, x).shape
        (2, 5, 8)

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.2.1, with
        one head and identity projections.
    """

    def __init__(self, use_scale: bool = False, **kwargs):
        super().__init__(**kwargs)
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
