"""Layers whose kernels are kept as directions and lengths."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.ops.linear import linear
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive, require_rate


class WeightNormalized(CompositeLayer):
    """A product with a kernel whose columns are learned as a direction and a length.

    kernel = length · direction / ‖direction‖, for each column.

    Args:
        dropout: Fraction of the inputs that is dropped before the layer. The lengths start shorter
            for it, so that outputs have the variance of the inputs.
        **kwargs: Arguments of `keras.layers.Layer`.

    Reference:
        Salimans and Kingma, 2016, https://arxiv.org/abs/1602.07868, equation 2.
    """

    def __init__(self, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        require_rate(dropout=dropout)
        self.dropout = dropout

    def _add_kernel(self, rows: int, columns: int, variance: float) -> None:
        length = (variance * (1 - self.dropout)) ** 0.5
        self.direction, self.length = (
            self.add_weight(name=name, shape=shape, initializer=initializer, autocast=False)
            for name, shape, initializer in (
                ("direction", (rows, columns), keras.initializers.RandomNormal(stddev=rows**-0.5)),
                ("length", (columns,), keras.initializers.Constant(length)),
            )
        )
        self.bias = self.add_weight(name="bias", shape=(columns,), initializer="zeros")

    def kernel(self) -> Any:
        """The kernel, of the compute dtype; a decoding loop makes it once, before its steps."""
        direction, length = (ops.convert_to_tensor(part) for part in (self.direction, self.length))
        square = ops.sum(ops.square(direction), axis=0)
        return ops.cast(direction * (length * ops.rsqrt(square)), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_attn")
class WeightNormalizedDense(WeightNormalized):
    """A dense layer with weight normalization.

    Args:
        units: Number of outputs.
        dropout: Fraction of the inputs that is dropped before the layer.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (..., features).
        kernel: What `kernel()` returned, where it is at hand.
        training: Whether a gradient is asked for.

    Returns:
        Tensor (..., units).
    """

    def __init__(self, units: int, dropout: float = 0.0, **kwargs):
        super().__init__(dropout, **kwargs)
        require_positive(units=units)
        self.units = units

    def build(self, input_shape):
        self._add_kernel(input_shape[-1], self.units, variance=1.0)

    def call(self, inputs, kernel=None, training=None):
        return linear(
            inputs, self.kernel() if kernel is None else kernel, self.bias, None, training
        )

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


@keras.saving.register_keras_serializable(package="keras_attn")
class GatedConvolution(WeightNormalized):
    """A convolution over positions; one half of its outputs gates the other half.

        [a; b] = convolution(inputs),    outputs = a · sigmoid(b)

    Args:
        units: Number of outputs.
        kernel_size: Number of positions that an output sees.
        causal: Whether these are the position itself and those before; otherwise it is in
            their middle, for which their number must be odd.
        dropout: Fraction of the inputs that is dropped before the layer.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features).
        kernel: What `kernel()` returned, where it is at hand.
        training: Whether a gradient is asked for.

    Returns:
        Tensor (batch, length, units).

    Raises:
        UserError: A size is not positive, or `kernel_size` is even and the layer not causal.

    References:
        Dauphin et al., 2017, https://arxiv.org/abs/1612.08083.
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122, sections 3.2 and 3.5.
    """

    def __init__(
        self, units: int, kernel_size: int, causal: bool = False, dropout: float = 0.0, **kwargs
    ):
        super().__init__(dropout, **kwargs)
        require_positive(units=units, kernel_size=kernel_size)
        require(
            causal or kernel_size % 2 == 1,
            "A convolution that sees both sides needs an odd `kernel_size`.",
            kernel_size=kernel_size,
        )
        self.units = units
        self.kernel_size = kernel_size
        self.causal = causal

    def build(self, input_shape):
        # The gate, a half on average, quarters the variance.
        self._add_kernel(self.kernel_size * input_shape[-1], 2 * self.units, variance=4.0)

    def call(self, inputs, kernel=None, training=None):
        before = self.kernel_size - 1 if self.causal else self.kernel_size // 2
        padded = ops.pad(inputs, ((0, 0), (before, self.kernel_size - 1 - before), (0, 0)))
        length = ops.shape(inputs)[1]
        seen = [padded[:, i : i + length] for i in range(self.kernel_size)]
        return self._gated(ops.concatenate(seen, axis=-1), kernel, training)

    def step(self, inputs: Tensor, window: Any, kernel: Tensor) -> tuple[Any, Any]:
        """Computes one more position.

        Args:
            inputs: Tensor (batch, features).
            window: The inputs before, (batch, kernel_size - 1, features), zeros at first.
            kernel: What `kernel()` returned.

        Returns:
            The outputs (batch, units), and the window of the next position.
        """
        seen = ops.concatenate([window, ops.expand_dims(inputs, 1)], axis=1)
        features = ops.reshape(seen, (-1, self.kernel_size * inputs.shape[-1]))
        return self._gated(features, kernel, None), seen[:, 1:]

    def _gated(self, seen, kernel, training) -> Any:
        kernel = self.kernel() if kernel is None else kernel
        outputs, gates = ops.split(linear(seen, kernel, self.bias, None, training), 2, axis=-1)
        return outputs * ops.sigmoid(gates)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)
