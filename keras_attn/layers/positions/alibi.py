"""Attention with linear biases, as in "Train Short, Test Long"."""

import math

import keras
from keras import ops

from keras_attn.layers.positions.relative_positions import DistanceBias


@keras.saving.register_keras_serializable(package="keras_attn")
class AlibiBias(DistanceBias):
    """Lowers scores in proportion to the distance, by another slope for each head.

    Given to `MultiHeadAttention(relative_positions=…)`. It has no parameters and works at lengths
    that training never saw. With n heads, n a power of two, the slopes are 2^(-8/n), 2^(-16/n), …,
    2^(-8); other numbers of heads take those of the next smaller power, and then every second one
    of the next larger. Keys after the query are as far as those before it.

    Args:
        num_heads: Number of query heads.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query_positions: int32 (batch, target).
        key_positions: int32 (batch, source); those of the queries by default.

    Returns:
        The bias (batch, heads, target, source), of the compute dtype.

    Reference:
        Press et al., 2021, https://arxiv.org/abs/2108.12409, section 3; other numbers of heads as
        in the authors' code.
    """

    def of_distances(self, distances):
        slopes = ops.convert_to_tensor(alibi_slopes(self.num_heads), dtype="float32")
        return -ops.expand_dims(ops.cast(ops.abs(distances), "float32"), -1) * slopes


def alibi_slopes(num_heads: int) -> list[float]:
    """The slope of each head."""
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2.0 ** (-8 * head / power) for head in range(1, power + 1)]
    finer = [2.0 ** (-4 * head / power) for head in range(1, 2 * power + 1, 2)]
    return slopes + finer[: num_heads - power]
