"""Base class of layers that are made of recurrent layers."""

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.recurrent.recurrent_unit import RecurrentUnit
from keras_attn.validation import require_positive, require_rate


class RecurrentLayer(CompositeLayer):
    """Recurrent layers of one kind and size.

    Args:
        cell: `"lstm"` or `"gru"`.
        units: Size of a layer's states, in each direction.
        num_layers: Number of layers.
        intra_attention: Number of its earlier states that each LSTM reads; `None` for plain ones.
        dropout: Fraction of each layer's input to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        cell: str,
        units: int,
        num_layers: int,
        intra_attention: int | None = None,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(num_layers=num_layers)
        require_rate(dropout=dropout)
        self.supports_masking = True
        self.cell = cell
        self.units = units
        self.intra_attention = intra_attention
        self.unit = RecurrentUnit(cell, units, intra_attention)
        self.num_layers = num_layers
        self.dropout = dropout
        self.seed = seed
