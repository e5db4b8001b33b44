"""A loop over the positions of a sequence, for steps that Keras has no layer for."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.capture import (
    CapturedAttention,
    capture_attention,
    is_capturing,
    show_found,
)
from keras_attn.tensors import Tensor


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
    captured = _CapturedSteps(step, output_dim) if is_capturing() else None
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


class _CapturedSteps:
    """A step of a loop whose attention is shown after the loop, that of all positions at once.

    Tensors of a loop's body are of no use outside of it: what is captured leaves the loop at the
    end of its outputs.

    Args:
        step: `step(inputs, states) -> (outputs, states)`, outputs (batch, output_dim).
        output_dim: Size of the outputs.
    """

    def __init__(self, step: Callable, output_dim: int):
        self._step = step
        self._output_dim = output_dim
        self._found: list[CapturedAttention] = []

    def __call__(self, inputs: Any, states: list) -> tuple[Any, list]:
        """Makes a step; its outputs are (batch, output_dim + what is captured)."""
        with capture_attention() as self._found:
            outputs, states = self._step(inputs, states)
        batch, parts = ops.shape(outputs)[0], [outputs]
        for shown in self._found:
            for part in (shown.query_real, shown.source_real, shown.weights):
                parts.append(ops.reshape(ops.cast(part, outputs.dtype), (batch, -1)))
        return ops.concatenate(parts, axis=-1), states

    def show(self, outputs: Tensor) -> Any:
        """Records the captured weights, and returns the outputs alone.

        Args:
            outputs: Tensor (batch, length, output_dim + what is captured), of all steps.

        Returns:
            The outputs of the step alone, (batch, length, output_dim).
        """
        start = self._output_dim
        for shown, width in zip(self._found, self._widths(ops.shape(outputs)[2]), strict=True):
            show_found(_over_steps(shown, outputs[..., start : start + width]))
            start += width
        of_step = outputs[..., : self._output_dim]
        # A slice of what has an unknown width has one itself.
        return ops.reshape(of_step, (*ops.shape(of_step)[:2], self._output_dim))

    def _widths(self, whole) -> list:
        """How many numbers there are of each captured attention: of one it may be unknown."""
        widths = [
            None if shown.weights.shape[3] is None else _width(shown) for shown in self._found
        ]
        known = sum(width for width in widths if width is not None)
        return [whole - self._output_dim - known if x is None else x for x in widths]


def _width(shown) -> int:
    _, heads, rows, columns = shown.weights.shape
    return rows + columns + heads * rows * columns


def _over_steps(shown, numbers) -> CapturedAttention:
    """One step's attention, with the numbers (batch, length, …) of all steps in it."""
    batch, length, width = ops.shape(numbers)
    heads = shown.weights.shape[1]
    columns = (width - 1) // (heads + 1)  # a step has one row
    weights = ops.reshape(numbers[..., 1 + columns :], (batch, length, heads, columns))
    return dataclasses.replace(
        shown,
        weights=ops.transpose(weights, (0, 2, 1, 3)),
        query_real=numbers[..., 0] > 0,
        source_real=ops.any(numbers[..., 1 : 1 + columns] > 0, axis=1),
        is_step=False,
    )
