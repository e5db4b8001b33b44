"""The encoder of "Convolutional Sequence to Sequence Learning"."""

import keras
from keras import ops

from keras_attn.layers.convolutional.stack import HALF_VARIANCE, ConvolutionalStack
from keras_attn.layers.convolutional.weight_normalization import WeightNormalizedDense
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.ops import masks


@keras.saving.register_keras_serializable(package="keras_attn")
class ConvolutionalEncoder(ConvolutionalStack):
    """Gated convolutions with residual connections, which give keys and values to attend to.

    Args:
        num_layers: Number of convolutions.
        hidden_dim: Size of a convolution's outputs.
        kernel_size: Number of positions that an output sees, odd.
        gradient_scale: Factor of the gradient that comes back to the convolutions.
        dropout: Fraction of each convolution's input to drop in training, in [0, 1).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the layer's compute dtype.
        mask: Boolean (batch, length), `False` at padding, which counts as zeros.
        training: Whether dropout is applied.

    Returns:
        The keys z and the values, z with the inputs added: both of the inputs' shape.

    Raises:
        UserError: A size is not positive, `kernel_size` is even, or `dropout` is outside [0, 1).

    Reference:
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122, sections 3.2 to 3.4. As in the
        authors' code, √0.5 scales the values too.
    """

    def __init__(
        self,
        num_layers: int,
        hidden_dim: int,
        kernel_size: int,
        gradient_scale: float = 1.0,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(num_layers, hidden_dim, kernel_size, dropout, **kwargs)
        self.gradient_scale = gradient_scale
        for i in range(num_layers):
            self._add_convolution(i, causal=False)

    def build(self, inputs_shape):
        hidden_shape = (*inputs_shape[:-1], self.hidden_dim)
        self.input_projection.build(inputs_shape)
        for convolution in self.convolutions:
            convolution.build(hidden_shape)
        self.output_projection = WeightNormalizedDense(
            inputs_shape[-1], name="output", dtype=self.dtype_policy
        )
        self.output_projection.build(hidden_shape)

    def call(self, inputs, mask=None, training=None):
        mask, valid = masks.boolean_masks(mask=mask)
        inputs = masks.unless_refused(without_hidden(inputs, mask), valid)
        x = self.input_projection(inputs, training=training)
        for dropout, convolution in zip(self.dropouts, self.convolutions, strict=True):
            y = without_hidden(dropout(x, training=training), mask)
            x = (convolution(y, training=training) + x) * HALF_VARIANCE
        z = self.output_projection(x, training=training)
        scaled = z * self.gradient_scale
        z = scaled + ops.stop_gradient(z - scaled)
        return z, (z + inputs) * HALF_VARIANCE

    def compute_output_spec(self, inputs, mask=None, training=None):
        return tuple(keras.KerasTensor(inputs.shape, self.compute_dtype) for _ in range(2))
