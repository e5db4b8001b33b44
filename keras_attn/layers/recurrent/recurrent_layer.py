"""Base class of layers that are made of recurrent layers."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.intra_attention_cell import IntraAttentionCell
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.validation import require, require_one_of, require_positive, require_rate

_CELLS = {
    "lstm": (keras.layers.LSTMCell, keras.layers.LSTM),
    "gru": (keras.layers.GRUCell, keras.layers.GRU),
}


class RecurrentLayer(CompositeLayer):
    """Recurrent layers of one kind and size.

    A layer's *summary* is what it hands on to another one, whatever else it keeps: the last hidden
    state of a GRU; of an LSTM the last hidden state and the last cell.

    Args:
        cell: `"lstm"` or `"gru"`.
        units: Size of a layer's states, in each direction.
        num_layers: Number of layers.
        intra_attention: Number of its earlier states that each LSTM reads (LSTM-Network); `None`
            for plain ones.
        dropout: Fraction of each layer's input to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        UserError: The cell is unknown, a size is not positive, `dropout` is outside [0, 1), or a
            GRU is to read its states.
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
        require_one_of("cell", cell, _CELLS)
        require_positive(units=units, num_layers=num_layers)
        require(
            intra_attention is None or cell == "lstm",
            "`intra_attention` needs the cell lstm.",
            intra_attention=intra_attention,
            cell=cell,
        )
        require_rate(dropout=dropout)
        self.cell = cell
        self.units = units
        self.intra_attention = intra_attention
        self.num_layers = num_layers
        self.dropout = dropout
        self.seed = seed

    def _make_cell(self, name: str) -> keras.layers.Layer:
        """Makes one step of a layer, a cell of `keras.layers.RNN`."""
        options = {"name": name, "dtype": self.dtype_policy}
        if self.intra_attention is not None:
            return IntraAttentionCell(self.units, self.intra_attention, **options)
        return _CELLS[self.cell][0](self.units, **options)

    def _make_layer(self, **options: Any) -> keras.layers.RNN:
        """Makes a layer that gives the outputs of all positions and its last states."""
        options |= {"return_sequences": True, "return_state": True}
        if self.intra_attention is not None:
            return keras.layers.RNN(self._make_cell("cell"), **options)
        # cuDNN's kernels go neither through XLA nor into a SavedModel for a CPU.
        return _CELLS[self.cell][1](self.units, use_cudnn=False, **options)

    def _summary(self, states: list) -> list:
        """What of a layer's last states another layer may start from."""
        if self.intra_attention is None:
            return list(states)
        hidden, _, cells, _, _ = states
        return [hidden, cells[:, -self.units :]]

    def _from_summary(self, summary: list) -> list:
        """The states before a layer's first step, from the summary of another layer."""
        if self.intra_attention is None:
            return list(summary)
        hidden, cell = summary
        # The only state that can be read.
        batch, more = ops.shape(hidden)[0], self.intra_attention - 1
        none = ops.zeros((batch, more * self.units), hidden.dtype)
        kept = ops.concatenate(
            [ops.zeros((batch, more), hidden.dtype), ops.ones((batch, 1), hidden.dtype)], axis=1
        )
        return [
            hidden,
            ops.concatenate([none, hidden], axis=1),
            ops.concatenate([none, cell], axis=1),
            kept,
            ops.zeros_like(hidden),
        ]
