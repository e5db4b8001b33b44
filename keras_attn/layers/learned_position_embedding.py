"""Learned position embeddings."""

import keras
from keras import ops

from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LearnedPositionEmbedding(keras.layers.Layer):
    """Adds a learned vector for each position to a sequence of vectors.

    Args:
        max_length: Number of positions that can be told apart.
        embeddings_initializer: Initialiser of the position vectors.
        embeddings_regularizer: Regulariser of the position vectors.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        start_index: Position of the first vector, int32: a scalar, or one for each sequence
            (batch,); 0 by default.

    Returns:
        The sum of inputs and position vectors, (batch, length, features).

    Raises:
        UserError: `max_length` is not positive, or the inputs are known to be longer.

    Reference:
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122, section 3.1.
    """

    def __init__(
        self,
        max_length: int,
        embeddings_initializer="glorot_uniform",
        embeddings_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(max_length=max_length)
        self.max_length = max_length
        self.supports_masking = True
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.max_length, input_shape[-1]),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
        )

    def call(self, inputs, start_index=0):
        if inputs.shape[1] is not None:
            require(
                inputs.shape[1] <= self.max_length,
                "The sequence must not be longer than `max_length`.",
                length=inputs.shape[1],
                max_length=self.max_length,
            )
        start = ops.reshape(ops.cast(start_index, "int32"), (-1, 1))
        positions = start + ops.arange(ops.shape(inputs)[1], dtype="int32")
        vectors = ops.take(self.embeddings, positions, axis=0)  # (1 or batch, length, features)
        return ops.add(inputs, ops.cast(vectors, inputs.dtype))

    def compute_output_spec(self, inputs, start_index=0):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return super().get_config() | {
            "max_length": self.max_length,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
        }
