"""Base class of tasks whose models compute numbers for whole inputs, such as probabilities."""

import abc
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import in_batches
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled
from keras_attn.tasks.token_view import TokenView
from keras_attn.tokenizers import Tokenizer


class WholeInputTask(Task):
    """Base class of tasks whose models compute a row of numbers for each input.

    Args:
        backbone: A model to (batch, columns), such as `keras_attn.models.SequenceClassifier`.
        tokenizers: The tokenizers by role.
    """

    served_input: ClassVar[str]
    """Name of the strings in the signatures of an export."""

    def __init__(self, backbone: keras.Model, tokenizers: Mapping[str, Tokenizer]):
        super().__init__(backbone, tokenizers)
        self._rows = ModelGraph(backbone, self._rows_of, [TEXTS], self._settings)

    def _computed(
        self, inputs: Sequence[Any], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Computes the numbers of each input, float32 (inputs, columns)."""
        inputs, batches = self._batches(inputs)
        rows = in_batches(
            batches,
            lambda batch: [self._rows(tf.constant(batch)).numpy()],
            inputs,
            progress=progress,
        )
        return np.array(rows, np.float32).reshape(len(inputs), self.backbone.output_shape[-1])

    def _signatures(
        self,
        answers: Mapping[str, Callable],
        column: str,
        jit: bool,
        compared: Mapping[str, Callable] = MappingProxyType({}),
    ) -> dict[str, ServingFunction]:
        """Makes the signatures of an export.

        Args:
            answers: Functions from the numbers of a batch to outputs by name, by signature.
            column: Name of the numbers in the signature of encoded inputs.
            jit: Whether XLA compiles the model.
            compared: What is compared of outputs (see `ServingFunction`), by signature.
        """
        compute = compiled(self._compute, jit)
        strings = {self.served_input: TEXTS}

        def of_strings(signature: str, answer: Callable) -> ServingFunction:
            return ServingFunction(
                lambda **inputs: answer(compute(self._encoded(*inputs.values()))),
                strings,
                compared=compared.get(signature),
            )

        name, spec, longest = self._encoding
        return {
            **{signature: of_strings(signature, answer) for signature, answer in answers.items()},
            name: ServingFunction(
                lambda **encoded: {column: compute(*encoded.values())},
                {name: spec},
                lambda examples: {name: self._encoded(tf.constant(examples))},
                longest=longest,
            ),
            "attention": attention_function(self.backbone, self.read_tokens, strings),
        }

    @property
    @abc.abstractmethod
    def _encoding(self) -> tuple[str, tf.TensorSpec, dict[str, int]]:
        """Name and specification of the tensor that strings are encoded to, and its `longest`."""

    @abc.abstractmethod
    def _encoded(self, strings: tf.Tensor) -> tf.Tensor:
        """Encodes strings (batch,) inside a graph."""

    @abc.abstractmethod
    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Encodes strings (batch,) for the model and names their tokens."""

    @abc.abstractmethod
    def model_inputs(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for encoded strings."""

    @abc.abstractmethod
    def _batches(self, inputs: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
        """Returns the checked inputs, and for each batch the positions of its inputs."""

    @abc.abstractmethod
    def _activated(self, outputs: tf.Tensor) -> tf.Tensor:
        """Converts the model's outputs, float32 (batch, columns), to what the task answers with."""

    def _rows_of(self, strings):
        return self._compute(self._encoded(strings))

    def _compute(self, encoded):
        outputs = self.backbone(self.model_inputs(encoded))
        return self._activated(tf.cast(outputs, tf.float32))
