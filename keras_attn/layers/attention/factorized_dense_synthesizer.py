"""The factorized dense synthesizer."""

import math

import keras

from keras_attn.layers.attention.head_projection import ROLES
from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import FactorizedDenseScores
from keras_attn.layers.seeds import separate_initializer
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class FactorizedDenseSynthesizer(SynthesizerAttention):
    """Each position predicts two short rows of scores, whose products are those for all positions.

    Position j has the product of score j // `factor` of the one, which is `max_length / factor`
    long, and of score j mod `factor` of the other: less to learn than in `DenseSynthesizer`.

    Args:
        num_heads: Number of heads.
        key_dim: Size inside each head, and of its value unless `value_dim` is given.
        max_length: Greatest length.
        factor: Length of the second row, a divisor of `max_length`; the largest one up to its
            square root by default.
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
        UserError: A size is not positive, a sequence is longer than `max_length`, `factor` does
            not divide it, `dropout` is outside [0, 1), or lengths differ.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.3.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        factor: int | None = None,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, dropout=dropout, seed=seed, **kwargs)
        factor = largest_divisor(max_length) if factor is None else factor
        require_positive(factor=factor)
        require(
            max_length % factor == 0,
            "`factor` must divide `max_length`.",
            factor=factor,
            max_length=max_length,
        )
        self.factor = factor
        self.scores = FactorizedDenseScores(
            num_heads,
            key_dim,
            max_length,
            factor,
            self.use_bias,
            separate_initializer(self.kernel_initializer, len(ROLES) + 1),
            name="scores",
            dtype=self.dtype_policy,
        )

    def get_config(self):
        return super().get_config() | {"factor": self.factor}


def largest_divisor(length: int) -> int:
    """The largest divisor of a length up to its square root."""
    return next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
