"""Recurrent layers one above the other."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.dropout import Dropout
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.recurrent.recurrent_layer import RecurrentLayer
from keras_attn.layers.seeds import separate_seed
from keras_attn.ops import masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class RecurrentStack(RecurrentLayer):
    """Recurrent layers of Keras one above the other: an encoder, or a decoder's.

    Args:
        bidirectional_layers: How many of them, from the bottom, read in both directions; their
            outputs are side by side.
        residual_from: Number of the first layer, counted from 0, to whose output its input is
            added.
        **kwargs: Arguments of `RecurrentLayer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the layer's compute dtype.
        mask: Boolean (batch, length), `False` at padding, which no layer reads.
        initial_states: For each layer the summary of another one (`RecurrentLayer`); zeros by
            default.
        context: Tensor (batch, length, context features) that every layer reads too.
        training: Whether dropout is applied.

    Returns:
        The outputs (batch, length, units, or twice that where the last layer is bidirectional), and
        the list of the layers' summaries, both directions side by side.

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), or the numbers of layers do
            not fit.

    References:
        Sutskever et al., 2014, https://arxiv.org/abs/1409.3215.
        Wu et al., 2016, https://arxiv.org/abs/1609.08144, section 3 (residual connections).
        Zaremba et al., 2014, https://arxiv.org/abs/1409.2329 (where dropout goes).
    """

    def __init__(
        self,
        cell: str,
        units: int,
        num_layers: int,
        bidirectional_layers: int = 0,
        residual_from: int | None = None,
        **kwargs,
    ):
        super().__init__(cell, units, num_layers, **kwargs)
        require(
            0 <= bidirectional_layers <= num_layers,
            "`bidirectional_layers` must lie between 0 and `num_layers`.",
            bidirectional_layers=bidirectional_layers,
            num_layers=num_layers,
        )
        self.bidirectional_layers = bidirectional_layers
        self.residual_from = residual_from
        dropout = partial(Dropout, self.dropout, dtype=self.dtype_policy)
        self.dropouts = [
            dropout(seed=separate_seed(self.seed, i), name=f"dropout_{i}")
            for i in range(num_layers)
        ]
        self.recurrent_layers = [self._layer(i) for i in range(num_layers)]

    def _layer(self, i) -> keras.layers.Layer:
        options = {"name": f"layer_{i}", "dtype": self.dtype_policy}
        layer = self._make_layer(**options)
        if not self._reads_both(i):
            return layer
        both = keras.layers.Bidirectional(layer, **options)
        # Keras copies the layer, and while it loads a model it knows layers by their addresses: one
        # that was freed would be taken for the next. A function's layers are none of the model's.
        both.copied_from = lambda: layer
        return both

    def _reads_both(self, i) -> bool:
        return i < self.bidirectional_layers

    def _output_size(self, i) -> int:
        return self.units * (2 if self._reads_both(i) else 1)

    def build(self, inputs_shape, context_shape=None):
        width = inputs_shape[-1]
        for i, layer in enumerate(self.recurrent_layers):
            features = width + (0 if context_shape is None else context_shape[-1])
            layer.build((*inputs_shape[:-1], features))
            output = self._output_size(i)
            require(
                not self._is_residual(i) or output == width,
                "A residual connection needs an input and an output of the same size.",
                layer=i,
                input=width,
                output=output,
            )
            width = output

    def call(self, inputs, mask=None, initial_states=None, context=None, training=None):
        mask, valid = masks.boolean_masks(mask=mask)
        inputs = masks.unless_refused(without_hidden(inputs, mask), valid)
        starts = [None] * self.num_layers if initial_states is None else self.start(initial_states)
        x, summaries = inputs, []
        for i, layer in enumerate(self.recurrent_layers):
            y = _with_context(self.dropouts[i](x, training=training), context)
            y, *states = layer(y, mask=mask, initial_state=starts[i])
            summaries.append(self._summary_of(i, states))
            x = ops.add(x, y) if self._is_residual(i) else y
        return x, summaries

    def start(self, summaries: list) -> list:
        """The states of all layers before their first step, from summaries of other layers."""
        return [self._from_summary(summary) for summary in summaries]

    def step(self, inputs: Tensor, states: list, context: Tensor = None) -> tuple[Any, list]:
        """Reads one more position.

        Args:
            inputs: Tensor (batch, features).
            states: What `start` or the step before returned; no layer is bidirectional.
            context: Tensor (batch, context features) that every layer reads too.

        Returns:
            The output (batch, units) and the new states.
        """
        x, after = inputs, []
        for i, (layer, before) in enumerate(zip(self.recurrent_layers, states, strict=True)):
            y, new = layer.cell(_with_context(x, context), before)
            after.append(new)
            x = ops.add(x, y) if self._is_residual(i) else y
        return x, after

    def _is_residual(self, i) -> bool:
        return self.residual_from is not None and i >= self.residual_from

    def _summary_of(self, i, states) -> list:
        if not self._reads_both(i):
            return self._summary(states)
        middle = len(states) // 2
        forward, backward = self._summary(states[:middle]), self._summary(states[middle:])
        return [ops.concatenate(both, axis=-1) for both in zip(forward, backward, strict=True)]

    def compute_output_spec(
        self, inputs, mask=None, initial_states=None, context=None, training=None
    ):
        sizes = [self._output_size(i) for i in range(self.num_layers)]
        parts = 1 if self.cell == "gru" else 2

        def spec(*shape):
            return keras.KerasTensor((inputs.shape[0], *shape), self.compute_dtype)

        summaries = [[spec(size) for _ in range(parts)] for size in sizes]
        return spec(inputs.shape[1], sizes[-1]), summaries


def _with_context(x, context) -> Any:
    return x if context is None else ops.concatenate([x, context], axis=-1)
