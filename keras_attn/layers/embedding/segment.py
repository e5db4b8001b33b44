"""Embeddings of the segments that a sequence is put together from."""

import keras

from keras_attn.layers.embedding.table import AddedEmbedding
from keras_attn.layers.hidden_positions import as_float
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class SegmentEmbedding(AddedEmbedding):
    """Adds a learned vector for each segment to a sequence of vectors.

    Args:
        num_segments: Number of segments that have a vector.
        **kwargs: Arguments of `keras.layers.Embedding`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        segment_ids: Segment of each position, int32 (batch, length), counted from 0.

    Returns:
        The sum of inputs and segment vectors, (batch, length, features).

    Raises:
        UserError: `num_segments` is not positive.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> segment_ids = np.array([[0, 0, 0, 1, 1]] * 2)
        >>> SegmentEmbedding()(x, segment_ids).shape
        (2, 5, 8)

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, figure 2.
    """

    def __init__(self, num_segments: int = 2, **kwargs):
        require_positive(num_segments=num_segments)
        super().__init__(num_segments, **kwargs)
        self.num_segments = num_segments

    def build(self, inputs_shape, segment_ids_shape=None):
        super().build(inputs_shape)

    def call(self, inputs, segment_ids):
        return self._added(as_float(inputs, self.compute_dtype), segment_ids)
