"""Learned position embeddings."""

import keras
from keras import ops

from keras_attn.layers.embedding.table import AddedEmbedding
from keras_attn.layers.hidden_positions import as_float
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LearnedPositionEmbedding(AddedEmbedding):
    """Adds a learned vector for each position to a sequence of vectors.

    Args:
        max_length: Number of positions that have a vector.
        **kwargs: Arguments of `keras.layers.Embedding`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        start_index: Position of the first vector, int32: a scalar, or one for each sequence
            (batch,); 0 by default.

    Returns:
        The sum of inputs and position vectors, (batch, length, features).

    Raises:
        UserError: `max_length` is not positive, or the inputs are known to be longer.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LearnedPositionEmbedding(max_length=10)(x).shape
        (2, 5, 8)

    Reference:
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122, section 3.1.
    """

    def __init__(self, max_length: int, **kwargs):
        require_positive(max_length=max_length)
        super().__init__(max_length, **kwargs)
        self.max_length = max_length

    def call(self, inputs, start_index=0):
        inputs = as_float(inputs, self.compute_dtype)
        if inputs.shape[1] is not None:
            require(
                inputs.shape[1] <= self.max_length,
                "The sequence must not be longer than `max_length`.",
                length=inputs.shape[1],
                max_length=self.max_length,
            )
        start = ops.reshape(ops.cast(start_index, "int32"), (-1, 1))
        positions = start + ops.arange(ops.shape(inputs)[1], dtype="int32")
        return self._added(inputs, positions)
