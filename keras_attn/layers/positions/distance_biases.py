"""Biases by distance: AlibiBias, as in "Train Short, Test Long", and learned ones, as in T5."""

import math
from typing import Any

import keras
from keras import ops

from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.ops.positions import relative_position_bucket
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


class DistanceBias(RelativePositions):
    """Adds to scores what follows from head and distance alone.

    Args:
        num_heads: Number of query heads.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    adds_bias = True

    def __init__(self, num_heads: int, **kwargs):
        super().__init__(**kwargs)
        require_positive(num_heads=num_heads)
        self.num_heads = num_heads

    def of_distances(self, distances: Tensor) -> Any:
        """The bias by distance.

        Args:
            distances: int32 (batch or 1, target, source), the key's position minus the query's.

        Returns:
            float32 or wider (batch or 1, target, source, num_heads).
        """
        raise NotImplementedError

    def bias(self, query, query_positions, key_positions):
        distances = ops.expand_dims(key_positions, -2) - ops.expand_dims(query_positions, -1)
        if len(distances.shape) == 2:
            distances = ops.expand_dims(distances, 0)
        return ops.transpose(self.of_distances(distances), (0, 3, 1, 2))

    def call(self, query_positions, key_positions=None):
        if key_positions is None:
            key_positions = query_positions
        return ops.cast(self.bias(None, query_positions, key_positions), self.compute_dtype)

    def compute_output_shape(self, query_positions_shape, key_positions_shape=None):
        batch, target = query_positions_shape
        source = target if key_positions_shape is None else key_positions_shape[1]
        return (batch, self.num_heads, target, source)


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

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = MultiHeadAttention(4, 2, relative_positions=AlibiBias(4))
        >>> layer(x, x).shape
        (2, 5, 8)

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


@keras.saving.register_keras_serializable(package="keras_attn")
class RelativePositionBias(DistanceBias):
    """Adds a learned number to scores, by head and by bucket of distances.

    Given to `MultiHeadAttention(relative_positions=…)`. Half of the buckets hold one distance
    each, the others for ranges that grow logarithmically up to `max_distance`; all that is
    further shares the last one.

    Args:
        num_heads: Number of query heads.
        num_buckets: Number of buckets.
        max_distance: From where on all distances are one.
        bidirectional: Whether keys after the query have half of the buckets for themselves;
            otherwise they count as at distance 0, as suits causal attention.
        embeddings_initializer: Initializer of the biases.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query_positions: int32 (batch, target).
        key_positions: int32 (batch, source); those of the queries by default.

    Returns:
        The bias (batch, heads, target, source), of the compute dtype.

    Raises:
        UserError: A size is not positive, `num_buckets` is odd though `bidirectional`, or too
            small or large for `max_distance`.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = MultiHeadAttention(4, 2, relative_positions=RelativePositionBias(4))
        >>> layer(x, x).shape
        (2, 5, 8)

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 2.1; buckets as in the
        authors' code.
    """

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        embeddings_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(num_heads, **kwargs)
        require_positive(num_buckets=num_buckets, max_distance=max_distance)
        require(num_buckets % 2 == 0, "`num_buckets` must be even.", num_buckets=num_buckets)
        exact = num_buckets // (4 if bidirectional else 2)
        require(
            0 < exact < max_distance,
            "`num_buckets` must give at least one bucket to a single distance, and `max_distance` "
            "lie beyond these.",
            num_buckets=num_buckets,
            max_distance=max_distance,
            bidirectional=bidirectional,
        )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, *_):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.num_buckets, self.num_heads),
            initializer=self.embeddings_initializer,
            autocast=False,  # what is added to scores is float32, as they are
        )

    def of_distances(self, distances):
        buckets = relative_position_bucket(
            distances, self.num_buckets, self.max_distance, self.bidirectional
        )
        return ops.take(self.embeddings, buckets, axis=0)
