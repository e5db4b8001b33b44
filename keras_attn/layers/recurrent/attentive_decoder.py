"""A recurrent decoder whose attention is queried by its own last state."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.recurrent.recurrence import recur
from keras_attn.layers.recurrent.recurrent_decoder import AttendingDecoder


@keras.saving.register_keras_serializable(package="keras_attn")
class AttentiveDecoder(AttendingDecoder):
    """A decoder whose bottom layer reads a context that its state of the step before asked for.

        contextᵢ = attention(query = hᵢ₋₁, source)
        hᵢ = cell([inputᵢ; contextᵢ], hᵢ₋₁)

    Only the bottom layer must wait for the attention: the layers above it are Keras' own. With
    `context_to_all` they read the same contexts, and the top layer's outputs are the decoder's, as
    in GNMT. Without it a maxout layer reads the top layer's outputs, the inputs and the contexts:
    with one layer, Bahdanau's decoder.

    Args:
        context_to_all: Whether all layers read the contexts.
        residual_from: Number of the first layer, counted from 0, to whose output its input is
            added.
        **kwargs: Arguments of `RecurrentDecoder`.

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), or the attention has dropout
            or no steps.

    References:
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473, section 3.1 and appendix A.2.2.
        Wu et al., 2016, https://arxiv.org/abs/1609.08144, section 3.
    """

    def __init__(
        self,
        cell: str,
        units: int,
        num_layers: int,
        attention: keras.layers.Layer,
        context_to_all: bool = False,
        residual_from: int | None = None,
        **kwargs,
    ):
        super().__init__(attention, cell=cell, units=units, num_layers=num_layers, **kwargs)
        self.context_to_all = context_to_all
        self.residual_from = residual_from
        options = {"dtype": self.dtype_policy}
        self.bottom_dropout = Dropout(self.dropout, self.seed, name="bottom_dropout", **options)
        self.bottom = self._make_cell("bottom")
        self.stack = self.readout = None
        if num_layers > 1:
            first = None if residual_from is None else max(residual_from - 1, 0)
            self.stack = self._stack(num_layers - 1, residual_from=first)
        if not context_to_all:
            self.readout = Dense(2 * units, name="readout", **options)

    def build(self, inputs_shape, source_shape):
        batch, length, features = inputs_shape
        units, context = self.units, self._build_attention(inputs_shape, source_shape)
        self.context_dim = context
        self.bottom.build((batch, features + context))
        if self.stack is not None:
            shape = (batch, length, context) if self.context_to_all else None
            self.stack.build((batch, length, units), shape)
        if self.readout is not None:
            self.readout.build((batch, length, units + features + context))

    def call(self, inputs, source, source_mask=None, initial_states=None, training=None):
        bottom, *above = self._summaries(inputs, initial_states)
        projected = self.attention.project_source(source, value_mask=source_mask)

        def step(x, states):
            hidden, context, after = self._bottom_step(x, projected, {"bottom": states}, 1)
            return ops.concatenate([hidden, context], axis=-1), after["bottom"]

        x = self.bottom_dropout(inputs, training=training)
        width = self.units + self.context_dim
        x = recur(step, x, self._from_summary(bottom), width, self.dtype_policy)
        x, context = ops.split(x, [self.units], axis=-1)
        if self.stack is not None:
            given = context if self.context_to_all else None
            x, _ = self.stack(x, initial_states=above, context=given, training=training)
        return self._read_out(x, inputs, context, training)

    def _start(self, rows, initial_states):
        bottom, *above = self._summaries(rows, initial_states)
        states = {"bottom": self._from_summary(bottom)}
        return states if self.stack is None else states | {"above": self.stack.start(above)}

    def step(self, inputs, projected, states, beams=1):
        x, context, after = self._bottom_step(inputs, projected, states, beams)
        if self.stack is not None:
            given = context if self.context_to_all else None
            x, after["above"] = self.stack.step(x, states["above"], given)
        return self._read_out(x, inputs, context), after

    def _bottom_step(self, x, projected, states, beams) -> tuple[Any, Any, dict]:
        bottom, coverage = states["bottom"], states.get("coverage")
        context, coverage = self._attend(bottom[0], projected, beams, coverage)
        hidden, bottom = self.bottom(ops.concatenate([x, context], axis=-1), bottom)
        after = {} if coverage is None else {"coverage": coverage}
        return hidden, context, after | {"bottom": list(bottom)}

    def _read_out(self, x, inputs, context, training=None) -> Any:
        if self.readout is None:
            return x
        x = self.readout(ops.concatenate([x, inputs, context], axis=-1), training=training)
        # The greater of each two neighbors.
        return ops.max(ops.reshape(x, (*ops.shape(x)[:-1], self.units, 2)), axis=-1)
