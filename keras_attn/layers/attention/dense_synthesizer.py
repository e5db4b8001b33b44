"""The dense synthesizer."""

import keras

from keras_attn.layers.attention.head_projection import ROLES
from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import DenseScores
from keras_attn.layers.seeds import separate_initializer


@keras.saving.register_keras_serializable(package="keras_attn")
class DenseSynthesizer(SynthesizerAttention):
    """Each position predicts from itself alone how it attends to all others.

    The scores are W₂ relu(W₁ x + b₁) + b₂, one for each position up to `max_length`; keys play no
    part.

    Args:
        num_heads: Number of heads.
        key_dim: Size inside each head, and of its value unless `value_dim` is given.
        max_length: Greatest length.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention` (`value_dim`, `use_bias`,
            `output_shape`, initializers, regularizers, constraints) and of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, length, features), of the layer's compute dtype.
        value: Tensor (batch, length, features), as long as the query.
        key: Not used.
        query_mask: Boolean (batch, length), `False` where the query is padding.
        value_mask: Boolean (batch, length), `False` where the value is padding.
        key_mask: Boolean (batch, length), `False` where the key is padding.
        attention_mask: Boolean (batch, length, length) or (batch, heads or 1, length, length),
            `True` where a query may attend to a position.
        return_attention_scores: Whether to return the attention probabilities too.
        training: Whether dropout is applied.
        use_causal_mask: Whether a query attends only to positions up to its own.

    Returns:
        The output (batch, length, features), and with `return_attention_scores` the probabilities
        (batch, num_heads, length, length).

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `dropout` is
            outside [0, 1), or lengths differ.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.1.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, dropout=dropout, seed=seed, **kwargs)
        self.scores = DenseScores(
            num_heads,
            key_dim,
            max_length,
            self.use_bias,
            separate_initializer(self.kernel_initializer, len(ROLES) + 1),
            name="scores",
            dtype=self.dtype_policy,
        )
