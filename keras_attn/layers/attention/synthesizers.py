"""The synthesizers of one kind of scores: dense or random, whole or factorized."""

import math

import keras

from keras_attn.layers.attention.head_projection import ROLES
from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import FactorizedRandomScores, RandomScores
from keras_attn.layers.seeds import separate_initializer
from keras_attn.validation import require, require_positive

RANK = 8  # of the paper
_OFFSET = len(ROLES) + 1  # after the projections and the output


@keras.saving.register_keras_serializable(package="keras_attn")
class DenseSynthesizer(SynthesizerAttention):
    """Each position predicts from itself alone how it attends to all others.

    The scores are W₂ relu(W₁ x + b₁) + b₂, one for each position up to `max_length`; keys play no
    part.

    Args:
        **kwargs: Further arguments of `SynthesizerAttention`.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `dropout` is
            outside [0, 1), or lengths differ.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.1.
    """

    def __init__(self, num_heads: int, key_dim: int, max_length: int, **kwargs):
        super().__init__(num_heads, key_dim, max_length, **kwargs)
        self.scores = self._made_dense(separate_initializer(self.kernel_initializer, _OFFSET))


@keras.saving.register_keras_serializable(package="keras_attn")
class FactorizedDenseSynthesizer(SynthesizerAttention):
    """Each position predicts two short rows of scores, whose products are those for all positions.

    Position j has the product of score j // `factor` of the one, which is `max_length / factor`
    long, and of score j mod `factor` of the other: less to learn than in `DenseSynthesizer`.

    Args:
        factor: Length of the second row, a divisor of `max_length`; the largest one up to its
            square root by default.
        **kwargs: Further arguments of `SynthesizerAttention`.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `factor` does
            not divide it, `dropout` is outside [0, 1), or lengths differ.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.3.
    """

    def __init__(
        self, num_heads: int, key_dim: int, max_length: int, factor: int | None = None, **kwargs
    ):
        super().__init__(num_heads, key_dim, max_length, **kwargs)
        factor = largest_divisor(max_length) if factor is None else factor
        require_positive(factor=factor)
        require(
            max_length % factor == 0,
            "`factor` must divide `max_length`.",
            factor=factor,
            max_length=max_length,
        )
        self.factor = factor
        initializer = separate_initializer(self.kernel_initializer, _OFFSET)
        self.scores = self._made_dense(initializer, factor)


@keras.saving.register_keras_serializable(package="keras_attn")
class RandomSynthesizer(SynthesizerAttention):
    """Attends by a matrix of scores that is the same for all inputs, learned or left at random.

    Args:
        key_dim: Size of each head's value unless `value_dim` is given; nothing else has this size.
        trainable_scores: Whether the matrices are learned; otherwise they stay as drawn.
        scores_initializer: Initializer of the matrices.
        **kwargs: Further arguments of `SynthesizerAttention`.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `dropout` is
            outside [0, 1), or lengths differ.

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.2.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        trainable_scores: bool = True,
        scores_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, **kwargs)
        self.trainable_scores = trainable_scores
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores = self._made(
            RandomScores, max_length, self.scores_initializer, trainable_scores
        )


@keras.saving.register_keras_serializable(package="keras_attn")
class FactorizedRandomSynthesizer(SynthesizerAttention):
    """Attends by a learned matrix of scores of low rank that is the same for all inputs.

    The matrix of each head is R₁ R₂ᵀ, with 2 · `max_length` · `rank` numbers to learn.

    Args:
        key_dim: Size of each head's value unless `value_dim` is given; nothing else has this size.
        rank: Number of columns of R₁ and R₂, 8 in the paper.
        scores_initializer: Initializer of both.
        **kwargs: Further arguments of `SynthesizerAttention`.

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
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, **kwargs)
        require_positive(rank=rank)
        self.rank = rank
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores = self._made(FactorizedRandomScores, max_length, rank, self.scores_initializer)


def largest_divisor(length: int) -> int:
    """The largest divisor of a length up to its square root."""
    return next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
