"""Graphs of a task's model."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_attn.validation import require


class ModelGraph:
    """A graph of a function of a model, traced again when the model has other weights.

    Quantization and LoRA replace weights of a model. A graph that was traced before them would
    compute with the old ones, as one that was traced with other settings would.

    Args:
        model: The model.
        function: The function, of tensors.
        signature: Specifications of its arguments.
        settings: Gives what else is part of the graph, if anything.
    """

    def __init__(
        self,
        model: keras.Model,
        function: Callable,
        signature: Sequence[tf.TensorSpec],
        settings: Callable[[], Any] = dict,
    ) -> None:
        self._model = model
        self._settings = settings
        self._function = function
        self._signature = list(signature)
        self._traced_with: Any = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Computes the function by its graph."""
        require_tensorflow()
        # The graph keeps the variables that it was traced with, so no other gets their identities.
        traced_with = [id(weight) for weight in self._model.weights], self._settings()
        if traced_with != self._traced_with:
            self._graph = tf.function(
                self._function, input_signature=self._signature, autograph=False
            )
            self._traced_with = traced_with
        return self._graph(*inputs, **named)


def require_tensorflow() -> None:
    """Raises `UserError` on another backend than TensorFlow, where tasks do not compute."""
    backend = keras.backend.backend()
    require(
        backend == "tensorflow",
        "Tasks compute in TensorFlow: set KERAS_BACKEND=tensorflow before Keras is imported. "
        "Layers and models, such as `task.backbone`, work on every backend.",
        backend=backend,
    )
