"""Additive attention, as in "Neural Machine Translation by Jointly Learning to Align"."""

import keras

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.layers.dense import Dense
from keras_attn.layers.seeds import separate_initializer
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
        kernel_initializer: Initialiser of v, W and U.
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
        UserError: `units` is not positive, or `dropout` is outside [0, 1).

    Reference:
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.1.2.
    """

    def __init__(
        self,
        units: int,
        kernel_initializer="glorot_uniform",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(dropout=dropout, seed=seed, **kwargs)
        require_positive(units=units)
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def _build_comparison(self, query_dim, key_dim):
        self.query_projection, self.key_projection = (
            Dense(
                self.units,
                use_bias=False,
                kernel_initializer=separate_initializer(self.kernel_initializer, offset),
                name=name,
                dtype=self.dtype_policy,
            )
            for offset, name in enumerate(("query", "key"))
        )
        self.query_projection.build((None, None, query_dim))
        self.key_projection.build((None, None, key_dim))
        self.scale = self.add_weight(
            name="scale",
            shape=(self.units, 1),
            initializer=separate_initializer(self.kernel_initializer, 2),
        )
        return self.units

    def _compared_query(self, query):
        return self.query_projection(query)

    def _compared_key(self, key):
        return self.key_projection(key)

    def _scores(self, query, key):
        return additive_scores(query, key, self.scale)

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
