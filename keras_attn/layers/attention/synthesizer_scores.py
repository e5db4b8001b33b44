"""Scores without a comparison of queries and keys, as in "Synthesizer".

Each layer is called with queries (batch, target, features) and the `ScoredPositions`, and gives
scores (batch or 1, heads, target, length), float32 or wider.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_attn.layers.adaptable import Adaptable
from keras_attn.layers.attention.head_projection import HeadProjection
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.linear import linear_of_heads
from keras_attn.tensors import Tensor
from keras_attn.validation import require


@dataclass(frozen=True)
class ScoredPositions:
    """The queries that scores are for, and the number of positions that are scored.

    Attributes:
        rows: Takes the queries' rows (batch or 1, heads, target, width) of matrices
            (heads, max_length, width).
        length: Number of positions that are scored, the first ones.
    """

    rows: Callable[[Any], Any]
    length: Any

    @classmethod
    def of_sequence(cls, length: Any) -> "ScoredPositions":
        """Of a sequence that begins at position 0, for itself."""
        return cls(lambda matrices: _first(matrices, length, 1)[None], length)

    @classmethod
    def of_queries(cls, positions: Any, length: int) -> "ScoredPositions":
        """Of queries at `positions`, int32 (target,) or (batch or 1, target)."""

        def rows(matrices):
            taken = ops.take(matrices, positions, axis=1)
            return taken[None] if len(positions.shape) == 1 else ops.moveaxis(taken, 0, 1)

        return cls(rows, length)


class SynthesizedScores(Rematerialized, keras.layers.Layer):
    """Scores by queries, or by their positions alone."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, query, previous_mask):
        # Scores have no length axis where Keras looks for one.
        return None


class HeadScores(Adaptable, Rematerialized, keras.layers.EinsumDense):
    """W h + b of each head, from what is inside of it.

    Args:
        num_heads: Number of heads.
        length: Number of scores of each query.
        use_bias: Whether to add b.
        kernel_initializer: Initializer of W.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        hidden: Tensor (batch, heads, target, units).
        length: Number of scores for each query, the first ones.

    Returns:
        Scores (batch, heads, target, length), float32 or wider.
    """

    def __init__(self, num_heads, length, use_bias, kernel_initializer, **kwargs):
        super().__init__(
            "bhtu,hul->bhtl",
            (num_heads, None, length),
            bias_axes="hl" if use_bias else None,
            kernel_initializer=self._initialize_heads,
            **kwargs,
        )
        self.length = length
        self._initializer = kernel_initializer

    def _initialize_heads(self, shape, dtype=None):
        initializers = (separate_initializer(self._initializer, head) for head in range(shape[0]))
        return ops.stack([initializer(shape[1:], dtype=dtype) for initializer in initializers])

    def quantize(self, mode=None, type_check=True, config=None):
        mode = config.mode if mode is None else mode
        require(
            mode not in ("gptq", "awq"),
            f"Kernels of single heads cannot be calibrated; leave them out of `quantize({mode!r})` "
            "by its `filters`.",
            layer=self.path,
        )
        super().quantize(mode, config=config)

    def call(self, hidden, length):
        dtype = computing_dtype(hidden.dtype)
        kernel = ops.cast(_first(self.kernel, length, -1), dtype)
        scores = linear_of_heads(ops.cast(hidden, dtype), kernel)
        if self.bias is None:
            return scores
        return scores + ops.cast(_first(self.bias, length, -1), dtype)

    def quantized_call(self, hidden, length):
        scores = super().quantized_call(hidden)
        return ops.cast(_first(scores, length, -1), computing_dtype(hidden.dtype))

    def compute_output_spec(self, hidden, length):
        shape = (*hidden.shape[:-1], length if isinstance(length, int) else None)
        return keras.KerasTensor(shape, computing_dtype(hidden.dtype))


class DenseScores(SynthesizedScores):
    """W₂ relu(W₁ x + b₁) + b₂ of each head: equation 1 of the paper.

    With a `factor` c they are products of two short ones, each repeated to the whole length
    (section 3.1.3): position j has the product of score j // c of the first, which has
    `length / c`, and score j mod c of the second, which has c. Both are of one relu(W₁ x + b₁):
    d² + d (length / c + c) parameters in all, as the paper counts them, and no second d².

    Args:
        num_heads: Number of heads.
        units: Size inside.
        length: Number of scores of each query.
        use_bias: Whether to add b₁ and b₂.
        kernel_initializer: Initializer of W₁ and W₂.
        factor: c, a divisor of `length`; `None` for whole scores.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self, num_heads, units, length, use_bias, kernel_initializer, factor=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads, self.units, self.factor = num_heads, units, factor
        self.hidden = HeadProjection(
            {"query": (num_heads, units)},
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            name="hidden",
            dtype=self.dtype_policy,
        )
        lengths = {"slow": length // factor, "fast": factor} if factor else {"scores": length}
        self.projections = [
            HeadScores(
                num_heads,
                length,
                use_bias,
                separate_initializer(kernel_initializer, 1 + number * num_heads),
                name=name,
                dtype=self.dtype_policy,
            )
            for number, (name, length) in enumerate(lengths.items())
        ]

    def build(self, query_shape):
        self.hidden.build(query_shape)
        for output in self.projections:
            output.build((query_shape[0], self.num_heads, query_shape[1], self.units))

    def call(self, query, positions):
        hidden = ops.relu(self.hidden(query)[0])  # (batch, heads, target, units)
        if self.factor is None:
            return self.projections[0](hidden, length=positions.length)
        repeats = (positions.length + self.factor - 1) // self.factor
        slow, fast = self.projections
        slow, fast = slow(hidden, length=repeats), fast(hidden, length=self.factor)
        products = ops.expand_dims(slow, -1) * ops.expand_dims(fast, -2)
        scores = ops.reshape(products, (*ops.shape(products)[:-2], repeats * self.factor))
        return _first(scores, positions.length, -1)


class RandomScores(SynthesizedScores):
    """A matrix for each head, learned or left as it was drawn: equation 5.

    Args:
        num_heads: Number of heads.
        length: Number of queries, and of scores of each.
        initializer: Initializer of the matrices.
        trainable_scores: Whether they are learned.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, num_heads, length, initializer, trainable_scores, **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.length = num_heads, length
        self.initializer = initializer
        self.trainable_scores = trainable_scores

    def build(self, query_shape):
        self.scores = self.add_weight(
            name="scores",
            shape=(self.num_heads, self.length, self.length),
            initializer=self.initializer,
            trainable=self.trainable_scores,
            autocast=False,
        )

    def call(self, query, positions):
        scores = ops.cast(self.scores, computing_dtype(self.scores.dtype))
        return positions.rows(_first(scores, positions.length, -1))


class FactorizedRandomScores(SynthesizedScores):
    """The product of two thin matrices for each head: equation 7.

    Args:
        num_heads: Number of heads.
        length: Number of queries, and of scores of each.
        rank: Number of columns of either matrix.
        initializer: Initializer of the matrices.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, num_heads, length, rank, initializer, **kwargs):
        super().__init__(**kwargs)
        self.shape = (num_heads, length, rank)
        self.initializer = initializer

    def build(self, query_shape):
        self.rows, self.columns = (
            self.add_weight(
                name=name,
                shape=self.shape,
                initializer=separate_initializer(self.initializer, offset),
                autocast=False,
            )
            for offset, name in enumerate(("rows", "columns"))
        )

    def call(self, query, positions):
        dtype = computing_dtype(self.rows.dtype)
        rows = positions.rows(ops.cast(self.rows, dtype))
        columns = ops.cast(_first(self.columns, positions.length, 1), dtype)
        return linear_of_heads(rows, ops.swapaxes(columns, -1, -2))


def _first(tensor: Tensor, length: Any, axis: int) -> Any:
    """The first `length` places of an axis, without a copy where these are all."""
    if isinstance(length, int) and length == tensor.shape[axis]:
        return tensor
    places = [slice(None)] * len(tensor.shape)
    places[axis] = slice(length)
    return tensor[tuple(places)]
