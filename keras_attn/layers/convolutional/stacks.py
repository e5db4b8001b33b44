"""The encoder and the decoder of "Convolutional Sequence to Sequence Learning"."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.convolutional.weight_normalization import (
    GatedConvolution,
    WeightNormalizedDense,
)
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.ops import masks
from keras_attn.validation import require_positive, require_rate

# A sum of two has the variance of one.
HALF_VARIANCE = 0.5**0.5


class ConvolutionalStack(CompositeLayer):
    """Gated convolutions after a projection of the inputs, each with dropout before it.

    Args:
        num_layers: Number of convolutions.
        hidden_dim: Size of a convolution's outputs.
        kernel_size: Number of positions that an output sees.
        dropout: Fraction of each convolution's input to drop in training, in [0, 1).
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self, num_layers: int, hidden_dim: int, kernel_size: int, dropout: float = 0.0, **kwargs
    ):
        super().__init__(**kwargs)
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, kernel_size=kernel_size)
        require_rate(dropout=dropout)
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.input_projection = WeightNormalizedDense(
            hidden_dim, dropout, name="input", dtype=self.dtype_policy
        )
        self.dropouts, self.convolutions = [], []

    def _add_convolution(self, i: int, causal: bool) -> None:
        options = {"dtype": self.dtype_policy}
        self.dropouts.append(Dropout(self.dropout, name=f"dropout_{i}", **options))
        convolution = GatedConvolution(
            self.hidden_dim,
            self.kernel_size,
            causal,
            self.dropout,
            name=f"convolution_{i}",
            **options,
        )
        self.convolutions.append(convolution)


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


@keras.saving.register_keras_serializable(package="keras_attn")
class ConvolutionalDecoder(ConvolutionalStack):
    """Causal gated convolutions, each followed by an attention to the source.

        h = convolution(x)
        context = √m · attention(query = W h + inputs, keys, values), of m source tokens
        x = x + h + W' context, each sum scaled by √0.5

    Args:
        num_layers: Number of convolutions.
        hidden_dim: Size of a convolution's outputs.
        kernel_size: Number of positions that an output sees, itself the last.
        dropout: Fraction of each convolution's input to drop in training, in [0, 1).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, target, features), of the layer's compute dtype.
        key: Tensor (batch, source, features).
        value: Tensor (batch, source, features).
        source_mask: Boolean (batch, source), `False` at padding.
        training: Whether dropout is applied.

    Returns:
        Tensor of the inputs' shape.

    Raises:
        UserError: A size is not positive, or `dropout` is outside [0, 1).

    Reference:
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122, sections 3.2 to 3.4. As in the
        authors' code, √0.5 scales the query too.
    """

    def __init__(
        self, num_layers: int, hidden_dim: int, kernel_size: int, dropout: float = 0.0, **kwargs
    ):
        super().__init__(num_layers, hidden_dim, kernel_size, dropout, **kwargs)
        options = {"dtype": self.dtype_policy}
        self.attention = LuongAttention("dot", name="attention", **options)
        self.context_projections = []
        for i in range(num_layers):
            self._add_convolution(i, causal=True)
            projection = WeightNormalizedDense(hidden_dim, name=f"context_{i}", **options)
            self.context_projections.append(projection)

    def build(self, inputs_shape, key_shape, value_shape):
        features, options = inputs_shape[-1], {"dtype": self.dtype_policy}
        hidden_shape = (*inputs_shape[:-1], self.hidden_dim)
        self.attention.build(inputs_shape, value_shape, key_shape)
        self.input_projection.build(inputs_shape)
        self.query_projections = [
            WeightNormalizedDense(features, name=f"query_{i}", **options)
            for i in range(self.num_layers)
        ]
        self.output_projection = WeightNormalizedDense(features, name="output", **options)
        for part in (*self.convolutions, *self.query_projections, self.output_projection):
            part.build(hidden_shape)
        for projection in self.context_projections:
            projection.build((*inputs_shape[:-1], value_shape[-1]))

    def call(self, inputs, key, value, source_mask=None, training=None):
        source = self.project_source(key, value, source_mask)
        x = self.input_projection(inputs, training=training)
        for i, (dropout, convolution) in enumerate(
            zip(self.dropouts, self.convolutions, strict=True)
        ):
            y = convolution(dropout(x, training=training), training=training)
            x = (self._attend(i, y, inputs, source, training) + x) * HALF_VARIANCE
        return self.output_projection(x, training=training)

    def project_source(self, key, value, source_mask=None) -> dict:
        """Computes what all steps need of the source.

        Args:
            key: Tensor (batch, source, features).
            value: Tensor (batch, source, features).
            source_mask: Boolean (batch, source), `False` at padding.

        Returns:
            What is attended to, the square root of the source's length, and the kernels.
        """
        real = ops.ones_like(key[..., 0]) if source_mask is None else source_mask
        length = ops.sum(ops.cast(real, "float32"), axis=1)
        parts = {
            "convolutions": self.convolutions,
            "queries": self.query_projections,
            "contexts": self.context_projections,
            "ends": (self.input_projection, self.output_projection),
        }
        return {
            "attended": self.attention.project_source(value, key, source_mask),
            "scale": ops.expand_dims(ops.cast(ops.sqrt(length), value.dtype), (1, 2)),
            "kernels": {name: [part.kernel() for part in each] for name, each in parts.items()},
        }

    def initial_windows(self, rows: Any) -> list:
        """What the convolutions saw before the first position, for as many rows as a tensor has."""
        shape = (ops.shape(rows)[0], self.kernel_size - 1, self.hidden_dim)
        return [ops.zeros(shape, self.compute_dtype) for _ in range(self.num_layers)]

    def step(self, inputs: Any, source: dict, windows: list, beams: int = 1) -> tuple[Any, list]:
        """Computes one more position of each hypothesis.

        Args:
            inputs: Tensor (sources * beams, features), the hypotheses of one source together.
            source: What `project_source` returned.
            windows: What `initial_windows` or the step before returned, a row for each hypothesis.
            beams: Number of hypotheses of each source.

        Returns:
            The outputs (sources * beams, features), and the new windows.
        """
        kernels, after = source["kernels"], []
        embedded = ops.reshape(inputs, (-1, beams, inputs.shape[-1]))
        x = self.input_projection(inputs, kernels["ends"][0])
        for i, (convolution, window) in enumerate(zip(self.convolutions, windows, strict=True)):
            y, window = convolution.step(x, window, kernels["convolutions"][i])
            after.append(window)
            y = ops.reshape(y, (-1, beams, self.hidden_dim))
            y = ops.reshape(self._attend(i, y, embedded, source), (-1, self.hidden_dim))
            x = (y + x) * HALF_VARIANCE
        return self.output_projection(x, kernels["ends"][1]), after

    def _attend(self, i, y, inputs, source, training=None) -> Any:
        """Adds what layer `i` finds in the source to its outputs (batch, target, hidden_dim)."""
        kernels = source["kernels"]
        query = self.query_projections[i](y, kernels["queries"][i], training=training)
        query = (query + inputs) * HALF_VARIANCE
        context = self.attention.attend_source(query, source["attended"]) * source["scale"]
        context = self.context_projections[i](context, kernels["contexts"][i], training=training)
        return (context + y) * HALF_VARIANCE

    def compute_output_spec(self, inputs, key, value, source_mask=None, training=None):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
