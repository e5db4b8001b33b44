"""What a task gives to whoever serves it: functions on tensors, and what these functions use."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class ServingFunction:
    """One signature of an exported task.

    Attributes:
        function: Called with one tensor for each input, by name; returns a dict of dense tensors,
            each with the batch in dimension 0. It uses ops of TensorFlow and tensorflow-text only.
        inputs: The inputs' specifications by name; dimension 0 is the batch, of unknown size.
        example_inputs: From example texts (or bytes) to the function's inputs, one row for each
            text or for the first of them, for golden outputs and warm-up records. Without it every
            string input gets the texts themselves and every other input ones, three of them along
            each unknown dimension.
        optional: Whether it is no answer but shows how one comes about: an export goes on without
            it, and says why, where tracing it raises a `UserError`.
        longest: Most ids in a row of each input that holds ids; an export refuses longer ones.
    """

    function: Callable[..., Mapping[str, tf.Tensor]]
    inputs: Mapping[str, tf.TensorSpec]
    example_inputs: Callable[[Sequence[Any]], Mapping[str, Any]] | None = None
    optional: bool = False
    longest: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Servable(Protocol):
    """What can be exported: every task.

    Attributes:
        kind: The kind of task, such as "seq2seq", written into the export's description.
    """

    kind: str

    def serving_functions(self, n_best: int, jit: bool = False) -> Mapping[str, ServingFunction]:
        """Returns the signatures by name, "serving_default" among them.

        Args:
            n_best: Number of hypotheses where a signature gives several.
            jit: Whether the numeric core, not the string ops, is to be compiled by XLA.
        """
        ...

    def example_texts(self) -> Sequence[str | bytes]:
        """Returns a few inputs that the task can process: texts of unequal lengths, or bytes."""
        ...

    def resources(self) -> Iterable[tf.Module | tf.Variable | keras.Variable]:
        """Returns all that the functions use: tokenizers and the variables of the model.

        An export may have the functions read other values in place of Keras variables.
        """
        ...
