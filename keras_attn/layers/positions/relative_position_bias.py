"""Learned biases by distance, as in T5."""

import keras
from keras import ops

from keras_attn.layers.positions.relative_positions import DistanceBias
from keras_attn.ops.positions import relative_position_bucket
from keras_attn.validation import require, require_positive


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
