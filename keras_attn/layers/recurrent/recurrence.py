"""A loop over the positions of a sequence, for steps that Keras has no layer for."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.layers.attention.capture import is_capturing
from keras_attn.layers.recurrent.captured_steps import CapturedSteps


def recur(step: Callable, inputs: Any, states: list, output_dim: int, dtype: Any) -> Any:
    """Calls a step for one position after the other, in `keras.layers.RNN`.

    Args:
        step: `step(inputs, states) -> (outputs, states)`: inputs (batch, features), outputs
            (batch, output_dim), states a list of (batch, size). It may use any other tensor.
        inputs: Tensor (batch, length, features).
        states: The states before the first position.
        output_dim: Size of the outputs.
        dtype: Dtype policy of inputs, states and outputs.

    Returns:
        The outputs of all positions, (batch, length, output_dim).
    """
    dtype = keras.dtype_policies.get(dtype)
    captured = CapturedSteps(step, output_dim) if is_capturing() else None
    step = captured or step
    cell = _Steps(step, [state.shape[-1] for state in states], output_dim, dtype.compute_dtype)
    layer = keras.layers.RNN(cell, return_sequences=True, dtype=dtype, name="recurrence")
    outputs = layer(inputs, initial_state=states)
    return captured.show(outputs) if captured else outputs


class _Steps:
    """A function in the form that `keras.layers.RNN` asks of a cell; it has no weights."""

    def __init__(self, step, state_size, output_size, compute_dtype):
        self.step = step
        self.state_size = state_size
        self.output_size = output_size
        self.compute_dtype = compute_dtype

    def call(self, inputs, states):
        outputs, states = self.step(inputs, list(states))
        return outputs, states

    __call__ = call
