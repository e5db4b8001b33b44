"""The kinds of recurrent layers that models are made of, behind one way to start and to end."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.intra_attention_cell import IntraAttentionCell
from keras_attn.validation import require, require_one_of, require_positive

CELLS = ("lstm", "gru")


@dataclasses.dataclass(frozen=True)
class RecurrentUnit:
    """A kind of recurrent layer, and its size.

    A layer's *summary* is what it hands on to another one, whatever else it keeps: the last hidden
    state of a GRU; of an LSTM the last hidden state and the last cell.

    Attributes:
        cell: `"lstm"` or `"gru"`.
        units: Size of the states.
        intra_attention: How many of its earlier states an LSTM reads (LSTM-Network); None for a
            plain one.

    Raises:
        UserError: The cell is unknown, a size is not positive, or a GRU is to read its states.
    """

    cell: str
    units: int
    intra_attention: int | None = None

    def __post_init__(self):
        require_one_of("cell", self.cell, CELLS)
        require_positive(units=self.units)
        require(
            self.intra_attention is None or self.cell == "lstm",
            "`intra_attention` needs the cell lstm.",
            intra_attention=self.intra_attention,
            cell=self.cell,
        )

    def make_cell(self, **arguments: Any) -> keras.layers.Layer:
        """Makes one step of the layer, a cell of `keras.layers.RNN`."""
        if self.intra_attention is not None:
            return IntraAttentionCell(self.units, self.intra_attention, **arguments)
        kind = {"lstm": keras.layers.LSTMCell, "gru": keras.layers.GRUCell}[self.cell]
        return kind(self.units, **arguments)

    def make_layer(self, **arguments: Any) -> keras.layers.RNN:
        """Makes a layer that gives the outputs of all positions and its last states."""
        arguments |= {"return_sequences": True, "return_state": True}
        if self.intra_attention is not None:
            cell = self.make_cell(name="cell", dtype=arguments.get("dtype"))
            return keras.layers.RNN(cell, **arguments)
        kind = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[self.cell]
        # cuDNN's kernels go neither through XLA nor into a SavedModel for a CPU.
        return kind(self.units, use_cudnn=False, **arguments)

    def summary(self, states: list) -> list:
        """What of a layer's last states another layer may start from."""
        if self.intra_attention is None:
            return list(states)
        hidden, _, cells, _, _ = states
        return [hidden, cells[:, -self.units :]]

    def start(self, summary: list) -> list:
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

    def zeros(self, inputs: Any, dtype: str) -> list:
        """The summary before anything was read, for as many rows as `inputs` has."""
        zeros = ops.zeros((ops.shape(inputs)[0], self.units), dtype)
        return [zeros] if self.cell == "gru" else [zeros, zeros]
