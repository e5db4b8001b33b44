"""The factorized random synthesizer."""

import keras

from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import FactorizedRandomScores
from keras_attn.validation import require_positive

RANK = 8  # of the paper


@keras.saving.register_keras_serializable(package="keras_attn")
class FactorizedRandomSynthesizer(SynthesizerAttention):
    """Attends by a learned matrix of scores of low rank that is the same for all inputs.

    The matrix of each head is R₁ R₂ᵀ, with 2 · `max_length` · `rank` numbers to learn.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's value unless `value_dim` is given; nothing else has this size.
        max_length: Greatest length.
        rank: Number of columns of R₁ and R₂, 8 in the paper.
        scores_initializer: Initialiser of both.
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
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.4.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        rank: int = RANK,
        scores_initializer="glorot_uniform",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, dropout=dropout, seed=seed, **kwargs)
        require_positive(rank=rank)
        self.rank = rank
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores = FactorizedRandomScores(
            num_heads,
            max_length,
            rank,
            self.scores_initializer,
            name="scores",
            dtype=self.dtype_policy,
        )

    def get_config(self):
        return super().get_config() | {
            "rank": self.rank,
            "scores_initializer": keras.initializers.serialize(self.scores_initializer),
        }
