"""Signatures of exported tasks, and the protocol of tasks that can be exported."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

TEXTS = tf.TensorSpec([None], tf.string)
"""Specification of a batch of strings."""

IDS = tf.TensorSpec([None, None], tf.int32)
"""Specification of a batch of padded ids."""


@dataclasses.dataclass(frozen=True)
class ServingFunction:
    """One signature of an exported task.

    Attributes:
        function: Called with one tensor for each input, by name; returns a dict of dense tensors,
            each with the batch in dimension 0. It uses ops of TensorFlow and tensorflow-text only.
        inputs: The inputs' specifications by name; dimension 0 is the batch, of unknown size.
        example_inputs: Converts example texts (or bytes) to the function's inputs, one row for each
            of the first texts, for golden outputs and warm-up records. By default string inputs
            get the texts themselves and other inputs get ones, three along each unknown dimension.
        optional: Whether an export may leave the signature out, with a message, if tracing it
            raises a `UserError`.
        longest: Maximum number of ids in a row of each input of ids; an export rejects longer rows.
        compared: Makes of the outputs what an export compares with those of fewer bits; by default
            they are compared as they are.

    Examples:
        >>> import tensorflow as tf
        >>> numbers = tf.TensorSpec([None], tf.float32)
        >>> twice = ServingFunction(lambda x: {"y": 2 * x}, inputs={"x": numbers})
        >>> twice.function(x=tf.constant([1.0, 3.0]))["y"].numpy()
        array([2., 6.], dtype=float32)
    """

    function: Callable[..., Mapping[str, tf.Tensor]]
    inputs: Mapping[str, tf.TensorSpec]
    example_inputs: Callable[[Sequence[Any]], Mapping[str, Any]] | None = None
    optional: bool = False
    longest: Mapping[str, int] = dataclasses.field(default_factory=dict)
    compared: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None


def first_and_numbers(several: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What is compared of several answers: the first ones, and the numbers of all.

    Further answers of almost equal numbers may change places.

    Args:
        several: Outputs (batch, answers, …).
    """
    return {
        name: array if array.dtype.kind == "f" else array[:, :1] for name, array in several.items()
    }


def compiled(function: Callable, jit: bool) -> Callable:
    """Makes a function of numbers a function of its own inside the graph of each signature.

    An export stores it once for all signatures that call it. It is traced anew for each of them,
    because it may use weights that the signature has converted.

    Args:
        function: The function.
        jit: Whether XLA compiles it; XLA cannot compile string ops.
    """

    def call(*inputs: Any) -> Any:
        if tf.executing_eagerly() and not jit:
            return function(*inputs)
        return tf.function(function, jit_compile=jit or None, autograph=False)(*inputs)

    return call


class Servable(Protocol):
    """Protocol of objects that can be exported, such as tasks.

    Attributes:
        kind: Name of the task, such as "seq2seq", written to the export's manifest.

    Examples:
        >>> import tensorflow as tf
        >>> class Lengths:
        ...     kind = "lengths"
        ...     def serving_functions(self, n_best, jit=False):
        ...         texts = {"text": tf.TensorSpec([None], tf.string)}
        ...         count = lambda text: {"length": tf.strings.length(text)}
        ...         return {"serving_default": ServingFunction(count, texts)}
        ...     def example_texts(self):
        ...         return ["a", "a cat"]
        ...     def resources(self):
        ...         return []
        >>> from keras_attn.export import export_saved_model
        >>> export_saved_model(Lengths(), "exported/lengths").name  # the version
        '1'
    """

    kind: str

    def serving_functions(self, n_best: int, jit: bool = False) -> Mapping[str, ServingFunction]:
        """Returns the signatures by name, "serving_default" among them.

        Args:
            n_best: Number of hypotheses where a signature gives several.
            jit: Whether XLA compiles the numeric part, without the string ops.
        """
        ...

    def example_texts(self) -> Sequence[str | bytes]:
        """Returns a few valid inputs: texts of different lengths, or bytes."""
        ...

    def resources(self) -> Iterable[tf.Module | tf.Variable | keras.Variable]:
        """Returns the tokenizers and variables that the functions use.

        An export may replace the values of Keras variables.
        """
        ...
