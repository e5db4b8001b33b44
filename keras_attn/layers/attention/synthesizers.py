"""The synthesizers: dense or random, whole or factorized, and mixtures of these."""

import math

import keras
from keras import ops

from keras_attn.layers.attention.head_projection import ROLES
from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import FactorizedRandomScores, RandomScores
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.scores import dot_scores
from keras_attn.ops.softmax import softmax
from keras_attn.validation import require, require_one_of, require_positive

RANK = 8  # of the paper
MEMBERS = (
    "dense",
    "factorized_dense",
    "random",
    "fixed_random",
    "factorized_random",
    "dot_product",
)
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

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> DenseSynthesizer(2, 4, max_length=5)(x, x).shape
        (2, 5, 8)

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

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> FactorizedDenseSynthesizer(2, 4, max_length=6, factor=2)(x, x).shape
        (2, 5, 8)

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
        key_dim: Size of each head's value unless `value_dim` is given.
        trainable_scores: Whether the matrices are learned; otherwise they stay as drawn.
        scores_initializer: Initializer of the matrices.
        **kwargs: Further arguments of `SynthesizerAttention`.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `dropout` is
            outside [0, 1), or lengths differ.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> RandomSynthesizer(2, 4, max_length=5)(x, x).shape
        (2, 5, 8)

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
        key_dim: Size of each head's value unless `value_dim` is given.
        rank: Number of columns of R₁ and R₂, 8 in the paper.
        scores_initializer: Initializer of both.
        **kwargs: Further arguments of `SynthesizerAttention`.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, `dropout` is
            outside [0, 1), or lengths differ.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> FactorizedRandomSynthesizer(2, 4, max_length=5, rank=2)(x, x).shape
        (2, 5, 8)

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


@keras.saving.register_keras_serializable(package="keras_attn")
class SynthesizerMixture(SynthesizerAttention):
    """Attends by a weighted sum of several kinds of scores, before one softmax.

    The weights are the softmax of one learned number for each kind.

    Args:
        members: Kinds of scores: `"dense"`, `"factorized_dense"`, `"random"`, `"fixed_random"`,
            `"factorized_random"`, `"dot_product"` (queries and keys, as in multi-head attention).
        scores_initializer: Initializer of random scores.
        **kwargs: Further arguments of `SynthesizerAttention`.

    Call arguments:
        key: Tensor (batch, source, features), for the dot product; `value` by default.

    Raises:
        UserError: A size is not positive, a sequence is longer than `max_length`, a member is
            unknown, `dropout` is outside [0, 1), or lengths differ.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = SynthesizerMixture(2, 4, max_length=5, members=("random", "dense"))
        >>> layer(x, x).shape
        (2, 5, 8)

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743, section 3.1.5.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        members: tuple[str, ...] = ("random", "dot_product"),
        scores_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, **kwargs)
        require(
            isinstance(members, tuple | list) and len(members) > 0,
            f"`members` must be a tuple of some of {', '.join(MEMBERS)}.",
            members=members,
        )
        for member in members:
            require_one_of("members", member, MEMBERS)
        self.members = list(members)
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores = [self._make_scores(i, member) for i, member in enumerate(self.members)]

    def _make_scores(self, number, member):
        """A member's scores; `None` for those of queries and keys."""
        name, length = f"{member}_{number}", self.max_length
        dense = separate_initializer(self.kernel_initializer, 1000 * (number + 1))
        drawn = separate_initializer(self.scores_initializer, 2 * number)
        if member == "dot_product":
            return None
        if member.endswith("dense"):
            factor = largest_divisor(length) if member == "factorized_dense" else None
            return self._made_dense(dense, factor, name)
        if member == "factorized_random":
            return self._made(FactorizedRandomScores, length, RANK, drawn, name=name)
        return self._made(RandomScores, length, drawn, member == "random", name=name)

    def _head_sizes(self):
        compared = dict.fromkeys(("query", "key"), (self.num_heads, self.key_dim))
        return super()._head_sizes() | (compared if "dot_product" in self.members else {})

    def _build_scores(self, query_shape):
        for scores in self.scores:
            if scores is not None:
                scores.build(query_shape)
        self.mixture = self.add_weight(
            name="mixture", shape=(len(self.members),), initializer="zeros", autocast=False
        )

    def _scores(self, query, heads, positions, columns=lambda scores: scores):
        weights = softmax(ops.cast(self.mixture, computing_dtype(self.mixture.dtype)))
        total = 0.0
        for i, scores in enumerate(self.scores):
            if scores is None:
                part = dot_scores(heads["query"], heads["key"]) * self.key_dim**-0.5
            else:
                part = columns(scores(query, positions=positions))
            total = total + weights[i] * part
        return total


def largest_divisor(length: int) -> int:
    """The largest divisor of a length up to its square root."""
    return next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
