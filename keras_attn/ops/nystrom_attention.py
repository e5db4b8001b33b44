"""The softmax of all pairs estimated from landmarks: the Nyström method."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.linear import identity, with_leading_axes
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor


def nystrom_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_landmarks: int,
    key_mask: Tensor = None,
    iterations: int = 6,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Computes softmax(Q K̃ᵀ) softmax(Q̃ K̃ᵀ)⁺ softmax(Q̃ Kᵀ) V, with landmarks Q̃ and K̃.

    Landmarks are the means of segments of the positions that are not masked, as equal in length as
    can be; where there are fewer positions than landmarks each is one. Time and memory are linear
    in the length.

    Args:
        query: Float tensor (batch, heads, length, key_dim).
        key: Float tensor (batch, heads, length, key_dim).
        value: Float tensor (batch, heads, length, value_dim).
        num_landmarks: Number of segments.
        key_mask: Boolean tensor that broadcasts to (batch, heads, length), True at positions that
            may be attended to.
        iterations: Number of steps towards the pseudoinverse.
        dropout: Fraction to drop of the weights between queries and landmarks, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.

    Returns:
        The context (batch, heads, length, value_dim) in the dtype of `value`: 0 where a query has
        nothing to attend to.

    Reference:
        Xiong et al., 2021, https://arxiv.org/abs/2102.03902, equations 13 and 14.
    """
    dtype = computing_dtype(query.dtype)
    query, key = (ops.cast(x, dtype) * query.shape[-1] ** -0.25 for x in (query, key))
    length = ops.shape(key)[2]
    real = ops.ones((1, 1, length), "bool") if key_mask is None else ops.cast(key_mask, "bool")
    segments = _Segments.of(real, num_landmarks, dtype)
    queries, keys = segments.means(query), segments.means(key)
    exists = ops.expand_dims(segments.exist, 2)  # (batch or 1, heads or 1, 1, landmarks)
    between = _softmax(queries, keys, exists)
    # The inverse of a matrix with 1 for landmarks that do not exist is the others' inverse.
    itself = identity(num_landmarks, dtype)
    between = ops.where(ops.swapaxes(exists, -1, -2), between, itself)
    from_queries = _softmax(query, keys, exists)
    if dropout:
        from_queries = drop_out(from_queries, dropout, seed)
    to_keys = _softmax(queries, key, ops.expand_dims(real, 2))
    context = ops.matmul(to_keys, ops.cast(value, dtype))
    context = ops.matmul(pseudoinverse(between, iterations), context)
    context = ops.cast(ops.matmul(from_queries, context), value.dtype)
    some = ops.expand_dims(ops.any(real, axis=-1, keepdims=True), -1)
    return ops.where(some, context, ops.zeros((), context.dtype))


def pseudoinverse(matrix: Tensor, iterations: int) -> Any:
    """Approaches the pseudoinverse of matrices whose rows are probabilities.

    Args:
        matrix: Float tensor (batch, heads, size, size). The heads of a row begin alike, by the
            greatest sum of a column of all, as in the authors' program.
        iterations: Number of steps, which converge with the third power.

    Returns:
        Tensor of the same shape.

    Reference:
        Razavi et al., 2014, and Xiong et al., 2021, https://arxiv.org/abs/2102.03902, equation 11.
    """
    itself = identity(matrix.shape[-1], matrix.dtype)
    # Rows add up to 1: the greatest sum of a column is the only factor.
    greatest = ops.sum(matrix, axis=-2, keepdims=True)
    greatest = ops.max(greatest, axis=(1, 3), keepdims=True, initial=0.0)
    inverse = ops.swapaxes(matrix, -1, -2) / greatest
    for _ in range(iterations):
        product = ops.matmul(matrix, inverse)
        inner = 15 * itself - ops.matmul(product, 7 * itself - product)
        inverse = 0.25 * ops.matmul(inverse, 13 * itself - ops.matmul(product, inner))
    return inverse


class _Segments(NamedTuple):
    """Segments of the positions that are real.

    Attributes:
        weights: The weight of each position in a segment's mean, float (batch or 1, heads or 1,
            landmarks, length).
        exist: Boolean (batch or 1, heads or 1, landmarks), `False` where a segment is empty.
    """

    weights: Any
    exist: Any

    @classmethod
    def of(cls, real: Any, count: int, dtype: str) -> "_Segments":
        place = ops.cumsum(ops.cast(real, "int32"), axis=-1) - 1
        total = ops.maximum(ops.max(place, axis=-1, keepdims=True, initial=0) + 1, count)
        number = ops.expand_dims(place * count // total, 2)
        members = ops.equal(number, ops.expand_dims(ops.arange(count, dtype="int32"), 1))
        members = ops.cast(ops.logical_and(members, ops.expand_dims(real, 2)), dtype)
        sizes = ops.sum(members, axis=-1, keepdims=True)
        return cls(members / ops.maximum(sizes, 1), sizes[..., 0] > 0)

    def means(self, x: Tensor) -> Any:
        """(batch, heads, length, width) to (batch, heads, landmarks, width)."""
        return ops.matmul(with_leading_axes(self.weights, x), x)


def _softmax(query: Tensor, key: Tensor, mask: Any) -> Any:
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    return softmax(ops.where(mask, scores, ops.cast(MASKED_SCORE, scores.dtype)))
