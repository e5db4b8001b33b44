"""Base class of stacks of gated convolutions."""

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.convolutional.weight_normalization import (
    GatedConvolution,
    WeightNormalizedDense,
)
from keras_attn.layers.dropout import Dropout
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
