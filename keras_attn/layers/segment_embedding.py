"""Embeddings of the segments that a sequence is put together from."""

import keras
from keras import ops

from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class SegmentEmbedding(keras.layers.Layer):
    """Adds a learned vector for each segment to a sequence of vectors.

    Args:
        num_segments: Number of segments that can be told apart.
        embeddings_initializer: Initialiser of the segment vectors.
        embeddings_regularizer: Regulariser of the segment vectors.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        segment_ids: Segment of each position, int32 (batch, length), counted from 0.

    Returns:
        The sum of inputs and segment vectors, (batch, length, features).

    Raises:
        UserError: `num_segments` is not positive.

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, figure 2.
    """

    def __init__(
        self,
        num_segments: int = 2,
        embeddings_initializer="glorot_uniform",
        embeddings_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(num_segments=num_segments)
        self.num_segments = num_segments
        self.supports_masking = True
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)

    def build(self, inputs_shape, segment_ids_shape=None):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.num_segments, inputs_shape[-1]),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
        )

    def call(self, inputs, segment_ids):
        vectors = ops.take(self.embeddings, ops.cast(segment_ids, "int32"), axis=0)
        return ops.add(inputs, ops.cast(vectors, inputs.dtype))

    def compute_output_shape(self, inputs_shape, segment_ids_shape=None):
        return inputs_shape

    def get_config(self):
        return super().get_config() | {
            "num_segments": self.num_segments,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
        }
