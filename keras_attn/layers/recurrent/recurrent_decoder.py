"""Recurrent decoders: the base classes with attention and without, and the one without."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.compatibility import require_cross_attention, require_steps
from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.layers.recurrent.recurrent_layer import RecurrentLayer
from keras_attn.layers.recurrent.recurrent_stack import RecurrentStack
from keras_attn.layers.seeds import separate_seed
from keras_attn.tensors import Tensor
from keras_attn.validation import require


class RecurrentDecoder(RecurrentLayer):
    """Recurrent layers over a target that know of its source in one way or another.

    A subclass gives `call` for whole targets, `initial_state` and `step`, and says by
    `supports_coverage` whether its states can hold a coverage.

    Args:
        **kwargs: Arguments of `RecurrentLayer`.

    Call arguments:
        inputs: Tensor (batch, target, features), of the layer's compute dtype.
        source: Tensor (batch, source, source features).
        source_mask: Boolean (batch, source), `False` at padding.
        initial_states: For each layer the summary of another one (`RecurrentLayer`); zeros by
            default.
        training: Whether dropout is applied.

    Returns:
        The outputs (batch, target, units).
    """

    supports_coverage = False

    def call(self, inputs, source=None, source_mask=None, initial_states=None, training=None):
        raise NotImplementedError

    def initial_state(
        self, source, source_mask=None, initial_states=None, coverage=False
    ) -> tuple[Any, Any]:
        """Makes what `step` needs.

        Args:
            source: Tensor (batch, source, source features).
            source_mask: Boolean (batch, source), `False` at padding.
            initial_states: As in the call.
            coverage: Whether the states hold as "coverage" how much attention each position of the
                source has had, float32 (batch, source), at padding 1 from the beginning.

        Returns:
            What belongs to the source, and the states of a hypothesis before its first token.
        """
        raise NotImplementedError

    def step(self, inputs, projected, states, beams: int = 1) -> tuple[Any, Any]:
        """Reads one more token of each hypothesis.

        Args:
            inputs: Tensor (sources * beams, features), the hypotheses of one source together.
            projected: What belongs to the source.
            states: What `initial_state` or the step before returned, a row for each hypothesis.
            beams: Number of hypotheses of each source.

        Returns:
            The outputs (sources * beams, units), and the new states.
        """
        raise NotImplementedError

    def _stack(self, num_layers, **arguments) -> RecurrentStack:
        return RecurrentStack(
            self.cell,
            self.units,
            num_layers,
            intra_attention=self.intra_attention,
            dropout=self.dropout,
            seed=separate_seed(self.seed, 1),
            name="stack",
            dtype=self.dtype_policy,
            **arguments,
        )

    def _summaries(self, rows, initial_states) -> list:
        """The summaries to start from, zeros for as many rows where none are given."""
        if initial_states is not None:
            return initial_states
        zeros = ops.zeros((ops.shape(rows)[0], self.units), self.compute_dtype)
        return [[zeros] if self.cell == "gru" else [zeros, zeros]] * self.num_layers

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.units)


@keras.saving.register_keras_serializable(package="keras_attn")
class FixedContextDecoder(RecurrentDecoder):
    """Recurrent layers that start from what the encoder's layers ended with, and nothing else.

    Args:
        **kwargs: Arguments of `RecurrentDecoder`.

    Raises:
        UserError: A size is not positive, or `dropout` is outside [0, 1).

    Reference:
        Sutskever et al., 2014, https://arxiv.org/abs/1409.3215, section 2; Cho et al. (2014),
        https://arxiv.org/abs/1406.1078, have the decoder read the context at every step as well.
    """

    def __init__(self, cell: str, units: int, num_layers: int, **kwargs):
        super().__init__(cell, units, num_layers, **kwargs)
        self.stack = self._stack(num_layers)

    def build(self, inputs_shape):
        self.stack.build(inputs_shape)

    def call(self, inputs, source=None, source_mask=None, initial_states=None, training=None):
        # Nothing is masked: padding is at the end, where no real token sees it.
        return self.stack(inputs, initial_states=initial_states, training=training)[0]

    def initial_state(self, source, source_mask=None, initial_states=None, coverage=False):
        return {}, self.stack.start(self._summaries(source, initial_states))

    def step(self, inputs, projected, states, beams=1):
        return self.stack.step(inputs, states)


class AttendingDecoder(RecurrentDecoder):
    """A recurrent decoder with an attention inside its recurrence.

    Args:
        attention: Attention layer to build its own from.
        **kwargs: Arguments of `RecurrentDecoder`.
    """

    def __init__(self, attention: keras.layers.Layer, **kwargs):
        super().__init__(**kwargs)
        require_cross_attention("attention", attention)
        self.attention = copy_layer(attention, "attention", dtype=self.dtype_policy)
        require_steps("attention", attention, "project_source", "attend_source")
        rate = getattr(attention, "dropout", 0.0)
        require(
            not rate,
            "A recurrent decoder's attention has no dropout.",
            attention=type(attention).__name__,
            dropout=rate,
        )

    def _build_attention(self, inputs_shape, source_shape) -> int:
        """Builds the attention; gives the size of a context."""
        query_shape = (inputs_shape[0], 1, self.units)
        self.attention.build(query_shape, source_shape)
        return self.attention.compute_output_shape(query_shape, source_shape)[-1]

    @property
    def supports_coverage(self) -> bool:
        """Whether the states can hold a coverage."""
        return isinstance(self.attention, BaseSingleHeadAttention)

    def _attend(
        self, query: Tensor, projected: dict, beams: int, coverage: Tensor = None
    ) -> tuple[Any, Any]:
        """From one state of each hypothesis (sources * beams, units) to a context of each.

        A coverage, float32 (sources * beams, source), grows by how much each position of the
        source is attended to.

        Returns:
            The contexts, and the coverage where there is one.
        """
        query = ops.reshape(query, (-1, beams, self.units))
        if coverage is None:
            context = self.attention.attend_source(query, projected)
        else:
            context, scores = self.attention.attend_source(
                query, projected, return_attention_scores=True
            )
            scores = ops.reshape(ops.cast(scores, coverage.dtype), ops.shape(coverage))
            coverage = ops.add(coverage, scores)
        return ops.reshape(context, (-1, context.shape[-1])), coverage

    def initial_state(self, source, source_mask=None, initial_states=None, coverage=False):
        projected = self.attention.project_source(source, value_mask=source_mask)
        states = self._start(source, initial_states)
        if coverage and source_mask is None:
            states["coverage"] = ops.zeros(ops.shape(source)[:2], "float32")
        elif coverage:
            states["coverage"] = ops.cast(ops.logical_not(source_mask), "float32")
        return projected, states

    def _start(self, rows: Any, initial_states: Any) -> dict:
        """The states before the first token, without a coverage."""
        raise NotImplementedError
