"""Sinusoidal position encoding, as in "Attention Is All You Need"."""

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.ops.positions import sinusoidal_positions


@keras.saving.register_keras_serializable(package="keras_attn")
class SinusoidalPositionEncoding(CompositeLayer):
    """Adds sines and cosines of the position to a sequence of vectors.

    The encoding is computed in float32 whatever the compute dtype: in bfloat16, positions past
    256 would no longer differ.

    Args:
        interleaved: Whether sines and cosines alternate, as in the paper; otherwise all sines come
            first, as in the authors' code and in Marian.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        start_index: Position of the first vector, int32: a scalar, or one for each sequence
            (batch,); 0 by default.

    Returns:
        The sum of inputs and encoding, (batch, length, features).

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SinusoidalPositionEncoding()(x).shape
        (2, 5, 8)

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.5.
    """

    def __init__(self, interleaved: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.interleaved = interleaved
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def build(self, input_shape):
        self.features = input_shape[-1]

    def call(self, inputs, start_index=0):
        inputs = as_float(inputs, self.compute_dtype)
        length = ops.shape(inputs)[1]
        start = ops.reshape(ops.cast(start_index, "int32"), (-1, 1))
        positions = start + ops.arange(length, dtype="int32")  # (1 or batch, length)
        encoding = sinusoidal_positions(positions, self.features, interleaved=self.interleaved)
        return inputs + ops.cast(encoding, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
