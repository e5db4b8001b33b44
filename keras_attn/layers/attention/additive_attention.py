"""Additive attention, as in "Neural Machine Translation by Jointly Learning to Align"."""

import keras

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.ops.scores import additive_scores
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class AdditiveAttention(BaseSingleHeadAttention):
    """Bahdanau's attention: a query's score for a key is vᵀ tanh(W query + U key).

    In an RNN decoder the query is the state before the step. `keras.layers.AdditiveAttention`
    has v alone; here W and U are part of the layer, as in the paper, so that query and key may
    have different sizes.

    Args:
        units: Size of v, and of what W and U project to.
        kernel_initializer: Initializer of v, W and U.
        **kwargs: Further arguments of `BaseSingleHeadAttention`.

    Raises:
        UserError: `units` is not positive, or `dropout` is outside [0, 1).

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = AdditiveAttention(units=16)
        >>> context, weights = layer(x, x, return_attention_scores=True)
        >>> context.shape, weights.shape
        ((2, 5, 8), (2, 5, 5))

    Reference:
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.1.2.
    """

    def __init__(self, units: int, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        require_positive(units=units)
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def _build_comparison(self, query_dim, key_dim):
        self._additive_weights(query_dim, key_dim, self.units)
        return self.units

    def _compared_query(self, query):
        return self.query_projection(query)

    def _compared_key(self, key):
        return self.key_projection(key)

    def _scores(self, query, key):
        return additive_scores(query, key, self.scale)
