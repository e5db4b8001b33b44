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
        skip_padding: Whether positions are counted over what the mask that Keras propagates does
            not hide, as in RoBERTa: padding before a token does not move it.
        **kwargs: Arguments of `keras.layers.Embedding`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        start_index: Position of the first vector, int32: a scalar, or one for each sequence
            (batch,); 0 by default.
        mask: Boolean (batch, length), as Keras propagates it; `None` where all positions are real.

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

    def __init__(self, max_length: int, *, skip_padding: bool = False, **kwargs):
        require_positive(max_length=max_length)
        super().__init__(max_length, **kwargs)
        self.max_length = max_length
        self.skip_padding = skip_padding

    def call(self, inputs, start_index=0, mask=None):
        inputs = as_float(inputs, self.compute_dtype)
        if inputs.shape[1] is not None:
            require(
                inputs.shape[1] <= self.max_length,
                "The sequence must not be longer than `max_length`.",
                length=inputs.shape[1],
                max_length=self.max_length,
            )
        start = ops.reshape(ops.cast(start_index, "int32"), (-1, 1))
        positions = ops.arange(ops.shape(inputs)[1], dtype="int32")
        if self.skip_padding and mask is not None:
            counted = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
            positions = ops.maximum(counted, 0)  # (batch, length)
        return self._added(inputs, start + positions)
