"""Functions that change logits before sampling, and the drawing of tokens.

`sample` applies them in the order of this module, which is that of Hugging Face's `generate`.
Excluded tokens have `-inf`.
"""

import math

from keras import ops

from keras_attn.ops.softmax import softmax_with_sums
from keras_attn.ops.top_k import top_k
from keras_attn.tensors import Tensor, TensorLike

_FEW = 256  # tokens that are checked before the whole vocabulary is sorted


def penalize_repetition(logits: Tensor, seen: Tensor, penalty: TensorLike) -> Tensor:
    """Makes tokens that have occurred less probable.

    Their negative logits are multiplied by `penalty`, the others are divided by it.

    Args:
        logits: float (rows, vocabulary).
        seen: bool (rows, vocabulary), the tokens that have occurred.
        penalty: 1 for no change, below 1 favors repetition; a number or float (rows,).

    Returns:
        Logits of the same shape and dtype.

    Reference:
        [Keskar et al., 2019](https://arxiv.org/abs/1909.05858), section 4.1, which assumes
        positive logits: dividing a negative logit would favor its token.
    """
    penalty = _per_row(penalty, logits.dtype)
    return ops.where(seen, ops.where(logits < 0, logits * penalty, logits / penalty), logits)


def divide_by_temperature(logits: Tensor, temperature: TensorLike) -> Tensor:
    """Sharpens a distribution by a temperature below 1, flattens it by one above.

    Args:
        logits: float (rows, vocabulary).
        temperature: Above 0; a number or float (rows,).

    Returns:
        Logits of the same shape and dtype.
    """
    if _is_number(temperature, 1):
        return logits
    return logits / _per_row(temperature, logits.dtype)


def keep_top_k(logits: Tensor, k: TensorLike) -> Tensor:
    """Excludes all tokens except the `k` most probable; of equal ones the lowest ids are kept.

    Args:
        logits: float (rows, vocabulary).
        k: 0 for all; an int or int32 (rows,).

    Returns:
        Logits of the same shape and dtype, `-inf` for excluded tokens.

    Reference:
        [Fan et al., 2018](https://arxiv.org/abs/1805.04833), section 5.
    """
    vocabulary = logits.shape[-1]
    if isinstance(k, int):
        if not 0 < k < vocabulary:
            return logits
        best, _ = top_k(logits, k)
        return _keep(logits, best[:, -1:], k)
    best, _ = ops.top_k(logits, vocabulary)
    k = _per_row(k, "int32")
    k = ops.where(ops.logical_or(k <= 0, k > vocabulary), vocabulary, k)
    return _keep(logits, _column(best, k - 1), k)


def keep_top_p(logits: Tensor, p: TensorLike) -> Tensor:
    """Keeps the smallest set of tokens whose probabilities sum to `p` or more, the nucleus.

    Of equally probable tokens those with the lowest ids are kept.

    Args:
        logits: float (rows, vocabulary); the probabilities are their softmax.
        p: Above 0; 1 keeps all. A number or float (rows,).

    Returns:
        Logits of the same shape and dtype, `-inf` for excluded tokens.

    Reference:
        [Holtzman et al., 2019](https://arxiv.org/abs/1904.09751), section 3.1.
    """
    if _is_number(p, 1):
        return logits
    vocabulary, p = logits.shape[-1], _per_row(p, logits.dtype)
    _, peak, total = softmax_with_sums(logits)

    def of_all() -> tuple[Tensor, Tensor]:
        return _nucleus(ops.top_k(logits, vocabulary)[0], peak, total, p)

    if vocabulary <= 4 * _FEW:
        return _keep(logits, *of_all())
    # Usually a few tokens have enough probability; otherwise the whole vocabulary is sorted.
    best, _ = top_k(logits, _FEW)
    reached = ops.sum(ops.exp(best - peak), axis=-1, keepdims=True) / total
    is_reached = ops.all(ops.logical_or(reached >= p, p >= 1))
    return _keep(logits, *ops.cond(is_reached, lambda: _nucleus(best, peak, total, p), of_all))


def keep_top_k_then_p(logits: Tensor, k: TensorLike, p: TensorLike) -> Tensor:
    """Computes `keep_top_p(keep_top_k(logits, k), p)`.

    If `k` is an int, only the `k` most probable tokens are sorted.
    """
    if not isinstance(k, int) or not 0 < k < logits.shape[-1] or _is_number(p, 1):
        return keep_top_p(keep_top_k(logits, k), p)
    best, _ = top_k(logits, k)
    _, peak, total = softmax_with_sums(best)
    kept = _keep(logits, best[:, -1:], k)
    return _keep(kept, *_nucleus(best, peak, total, _per_row(p, logits.dtype)))


def draw_columns(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Draws one column of each row by the softmax of its logits.

    The distribution function is inverted twice, for a block of columns and then within it: sums of
    a few hundred numbers lose no small probability, and nothing but one pass of exponentials has
    the size of the vocabulary.

    Args:
        logits: float32 or float64 (rows, columns), `-inf` for what is not to be drawn. A row with
            NaN, or of nothing but `-inf`, gives any column.
        uniforms: Uniform numbers in [0, 1) of the same dtype, (rows, 2).

    Returns:
        int32 (rows,).
    """
    logits, uniforms = ops.convert_to_tensor(logits), ops.convert_to_tensor(uniforms)
    columns = logits.shape[-1]
    block = 2 ** round(math.log2(columns) / 2)
    blocks = -(-columns // block)
    weights = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    weights = ops.pad(weights, ((0, 0), (0, blocks * block - columns)))
    weights = ops.reshape(weights, (-1, blocks, block))
    chosen = _invert(ops.sum(weights, axis=-1), uniforms[:, 0])
    inside = ops.take_along_axis(weights, chosen[:, None, None], axis=1)[:, 0]  # (rows, block)
    column = chosen * block + _invert(inside, uniforms[:, 1])
    return ops.minimum(column, columns - 1)


def _nucleus(best: Tensor, peak: Tensor, total: Tensor, p: TensorLike) -> tuple[Tensor, Tensor]:
    """The lowest logit of the nucleus and its size, both (rows, 1).

    `best` (rows, columns) are the highest logits in their order; `exp(logit - peak) / total` is the
    probability.
    """
    mass = ops.cumsum(ops.exp(best - peak) / total, axis=-1)
    # One more than the tokens whose sum is below `p`.
    short = ops.cast(mass[:, :-1] < p, "int32")
    size = 1 + ops.sum(short, axis=-1, keepdims=True)
    # The last sum may be rounded to less than 1, or earlier ones to 1.
    threshold = ops.where(p >= 1, -math.inf, _column(best, size - 1))
    return threshold, size


def _keep(logits: Tensor, threshold: Tensor, count: Tensor) -> Tensor:
    """The logits above the threshold and the first equal ones, `count` in total."""
    above, equal = ops.greater(logits, threshold), ops.equal(logits, threshold)
    room = count - ops.sum(ops.cast(above, "int32"), axis=-1, keepdims=True)
    is_first = ops.cumsum(ops.cast(equal, "int32"), axis=-1) <= room
    kept = ops.logical_or(above, ops.logical_and(equal, is_first))
    return ops.where(kept, logits, -math.inf)


def _column(values: Tensor, columns: Tensor) -> Tensor:
    """`values[r, columns[r]]`, both (rows, 1)."""
    return ops.take_along_axis(values, ops.cast(columns, "int32"), axis=-1)


def _per_row(value: Tensor, dtype: str) -> Tensor:
    """A scalar unchanged, values for each row as (rows, 1)."""
    value = ops.convert_to_tensor(value)
    return ops.cast(value[:, None] if len(value.shape) else value, dtype)


def _is_number(value: TensorLike, number: float) -> bool:
    return isinstance(value, (int, float)) and value == number


def _invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The first column of positive weight whose sum of weights so far passes the number's share."""
    sums = ops.where(weights > 0, ops.cumsum(weights, axis=-1), -1.0)
    # The last sum of a positive weight is the largest: rounding can lead to no weight of 0.
    total = ops.max(sums, axis=-1, keepdims=True)
    return ops.cast(
        ops.argmax(ops.cast(sums > uniforms[:, None] * total, "int32"), axis=-1), "int32"
    )
