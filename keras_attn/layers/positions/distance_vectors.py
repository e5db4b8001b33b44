"""Vectors of distances, which disentangled attention compares with queries and keys."""

from typing import Any

import keras

from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.ops.positions import signed_position_bucket
from keras_attn.tensors import Tensor
from keras_attn.validation import UserError, require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class DistanceVectors(RelativePositions):
    """A learned vector for each distance, or range of distances, before and after a query.

    Args:
        num_buckets: Number of vectors on each side: half of them are for one distance each. `None`
            for one for each distance.
        max_distance: From where on all distances share the last vector.
        epsilon: Added to the variance where vectors are normalized; `None` where they are not.
        embeddings_initializer: Initializer of the vectors.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        UserError: A size is not positive, or buckets reach beyond `max_distance`.
    """

    adds_bias = True

    def __init__(
        self,
        num_buckets: int | None = 256,
        max_distance: int = 512,
        epsilon: float | None = None,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(max_distance=max_distance)
        if num_buckets is not None:
            require_positive(num_buckets=num_buckets)
            require(
                num_buckets >= 4 and max_distance - 1 > num_buckets // 2,
                "`num_buckets` must be 4 or more, and half of them below `max_distance` - 1.",
                num_buckets=num_buckets,
                max_distance=max_distance,
            )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.epsilon = epsilon
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, inputs_shape):
        """Creates the vectors, of the features of inputs (batch, length, features)."""
        features = inputs_shape[-1]
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(2 * (self.num_buckets or self.max_distance), features),
            initializer=self.embeddings_initializer,
        )
        self.norm = None
        if self.epsilon is not None:
            self.norm = LayerNormalization(self.epsilon, dtype=self.dtype_policy, name="norm")
            self.norm.build((None, features))

    def call(self, training=False):
        """All vectors, (2 * number of buckets, features), of the compute dtype."""
        vectors = keras.ops.cast(self.embeddings, self.compute_dtype)
        return vectors if self.norm is None else self.norm(vectors, training=training)

    def rows(self, distances: Tensor) -> Any:
        """The number of the vector of each distance, a query's position minus a key's."""
        return signed_position_bucket(distances, self.num_buckets, self.max_distance)

    def bias(self, query, query_positions, key_positions):
        raise UserError("DistanceVectors are for DisentangledAttention, which projects them.")

    def compute_output_spec(self, training=False):
        rows = 2 * (self.num_buckets or self.max_distance)
        return keras.KerasTensor((rows, self.embeddings.shape[-1]), self.compute_dtype)
