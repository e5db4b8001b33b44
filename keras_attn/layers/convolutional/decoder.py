"""The decoder of "Convolutional Sequence to Sequence Learning"."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.convolutional.stack import HALF_VARIANCE, ConvolutionalStack
from keras_attn.layers.convolutional.weight_normalization import WeightNormalizedDense


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
