"""Mixtures of synthesizers."""

import keras
from keras import ops

from keras_attn.layers.attention.factorized_dense_synthesizer import largest_divisor
from keras_attn.layers.attention.factorized_random_synthesizer import RANK
from keras_attn.layers.attention.synthesizer_base import SynthesizerAttention
from keras_attn.layers.attention.synthesizer_scores import (
    DenseScores,
    FactorizedDenseScores,
    FactorizedRandomScores,
    RandomScores,
)
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.scores import dot_scores
from keras_attn.ops.softmax import softmax
from keras_attn.validation import require, require_one_of

MEMBERS = (
    "dense",
    "factorized_dense",
    "random",
    "fixed_random",
    "factorized_random",
    "dot_product",
)


@keras.saving.register_keras_serializable(package="keras_attn")
class SynthesizerMixture(SynthesizerAttention):
    """Attends by a weighted sum of several kinds of scores, before one softmax.

    The weights are the softmax of one learned number for each kind.

    Args:
        num_heads: Number of heads.
        key_dim: Size inside each head, and of its value unless `value_dim` is given.
        max_length: Greatest length.
        members: Kinds of scores: `"dense"`, `"factorized_dense"`, `"random"`, `"fixed_random"`,
            `"factorized_random"`, `"dot_product"` (queries and keys, as in multi-head attention).
        scores_initializer: Initialiser of random scores.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention` (`value_dim`, `use_bias`,
            `output_shape`, initializers, regularizers, constraints) and of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, length, features), of the layer's compute dtype.
        value: Tensor (batch, length, features), as long as the query.
        key: Tensor (batch, length, features), for the dot product; `value` by default.
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
        UserError: A size is not positive, a sequence is longer than `max_length`, a member is
            unknown, `dropout` is outside [0, 1), or lengths differ.

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
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, max_length, dropout=dropout, seed=seed, **kwargs)
        require(
            isinstance(members, tuple | list) and len(members) > 0,
            f"`members` must be a tuple of some of {', '.join(MEMBERS)}.",
            members=members,
        )
        for member in members:
            require_one_of("members", member, MEMBERS)
        self.members = tuple(members)
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores = [self._make_scores(i, member) for i, member in enumerate(self.members)]

    def _make_scores(self, number, member):
        """A member's scores; `None` for those of queries and keys."""
        name = f"{member}_{number}"
        policy = {"name": name, "dtype": self.dtype_policy}
        heads, length = self.num_heads, self.max_length
        dense = (self.use_bias, separate_initializer(self.kernel_initializer, 1000 * (number + 1)))
        drawn = separate_initializer(self.scores_initializer, 2 * number)
        if member == "dense":
            return DenseScores(heads, self.key_dim, length, *dense, **policy)
        if member == "factorized_dense":
            factor = largest_divisor(length)
            return FactorizedDenseScores(heads, self.key_dim, length, factor, *dense, **policy)
        if member == "factorized_random":
            return FactorizedRandomScores(heads, length, RANK, drawn, **policy)
        if member == "dot_product":
            return None
        return RandomScores(heads, length, drawn, member == "random", **policy)

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

    def get_config(self):
        return super().get_config() | {
            "members": list(self.members),
            "scores_initializer": keras.initializers.serialize(self.scores_initializer),
        }
