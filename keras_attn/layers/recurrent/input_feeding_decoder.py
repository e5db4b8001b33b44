"""A recurrent decoder with input feeding, as in Luong et al., 2015."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.recurrent.recurrence import recur
from keras_attn.layers.recurrent.recurrent_decoder import AttendingDecoder
from keras_attn.layers.seeds import separate_seed
from keras_attn.ops.dropout import dropout as drop_out


@keras.saving.register_keras_serializable(package="keras_attn")
class InputFeedingDecoder(AttendingDecoder):
    """Luong's decoder with input feeding.

        hᵢ = cells([inputᵢ; fedᵢ₋₁])
        contextᵢ = attention(query = hᵢ, source)
        fedᵢ = tanh(W [contextᵢ; hᵢ]), which is the output; fed₀ is 0

    Every layer waits for the attention of the step before, so all are in one loop.

    Args:
        **kwargs: Arguments of `RecurrentDecoder`.

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), or the attention has dropout
            or no steps.

    Reference:
        Luong et al., 2015, https://arxiv.org/abs/1508.04025, sections 3 (equation 5) and 3.3.
    """

    def __init__(
        self, cell: str, units: int, num_layers: int, attention: keras.layers.Layer, **kwargs
    ):
        super().__init__(attention, cell=cell, units=units, num_layers=num_layers, **kwargs)
        options = {"dtype": self.dtype_policy}
        self.input_dropout = Dropout(self.dropout, self.seed, name="input_dropout", **options)
        self.seed_generator = None
        if self.dropout and num_layers > 1:
            self.seed_generator = keras.random.SeedGenerator(separate_seed(self.seed, 1))
        self.cells = [self._make_cell(f"cell_{i}") for i in range(num_layers)]
        self.attentional = Dense(
            units, activation="tanh", use_bias=False, name="attentional", **options
        )

    def build(self, inputs_shape, source_shape):
        batch, _, features = inputs_shape
        units, context = self.units, self._build_attention(inputs_shape, source_shape)
        for i, cell in enumerate(self.cells):
            cell.build((batch, units if i else features + units))
        self.attentional.build((batch, context + units))

    def call(self, inputs, source, source_mask=None, initial_states=None, training=None):
        projected = self.attention.project_source(source, value_mask=source_mask)
        states = self._start(inputs, initial_states)
        x = self.input_dropout(inputs, training=training)
        features = x.shape[-1]
        if training and self.seed_generator is not None:
            # Random numbers cannot be drawn inside the loop: those of all steps come along.
            x = ops.concatenate([x, self._dropout_masks(x)], axis=-1)

        def step(x, flat):
            x, masks = ops.split(x, [features], axis=-1)
            masks = ops.split(masks, self.num_layers - 1, axis=-1) if masks.shape[-1] else None
            nested = keras.tree.pack_sequence_as(states, flat)
            outputs, nested = self.step(x, projected, nested, masks=masks)
            return outputs, keras.tree.flatten(nested)

        return recur(step, x, keras.tree.flatten(states), self.units, self.dtype_policy)

    def _start(self, rows, initial_states):
        summaries = self._summaries(rows, initial_states)
        return {
            "cells": [self._from_summary(summary) for summary in summaries],
            "fed": ops.zeros_like(summaries[0][0]),
        }

    def _dropout_masks(self, x) -> Any:
        width = (self.num_layers - 1) * self.units
        ones = ops.ones((*ops.shape(x)[:-1], width), x.dtype)
        return drop_out(ones, self.dropout, self.seed_generator)

    def step(self, inputs, projected, states, beams=1, masks=None):
        x, after = ops.concatenate([inputs, states["fed"]], axis=-1), []
        for i, (cell, before) in enumerate(zip(self.cells, states["cells"], strict=True)):
            if i and masks is not None:
                x = ops.multiply(x, masks[i - 1])
            x, new = cell(x, before)
            after.append(list(new))
        context, coverage = self._attend(x, projected, beams, states.get("coverage"))
        fed = self.attentional(ops.concatenate([context, x], axis=-1))
        covered = {} if coverage is None else {"coverage": coverage}
        return fed, covered | {"cells": after, "fed": fed}
