"""Kinds of soft targets, by what the outputs of a task mean."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras_attn.training.distillation_settings import DistillationSettings
from keras_attn.training.loop.teaching import (
    Teaching,
    soft_binary_cross_entropy,
    soft_cross_entropy,
    squared_differences,
    tempered_sigmoid,
    tempered_softmax,
)
from keras_attn.training.task_runs.taught_vectors import VectorTargets


@dataclass(frozen=True)
class SoftTargets:
    """How outputs of teachers become targets, and how a student is measured by them.

    Attributes:
        loss: `loss(labels, outputs, targets)`, with `temperature` if there is an `activation`.
        activation: `activation(outputs, temperature)`; `None` if outputs are targets as they are.
        temperature: Temperature where settings have none.
    """

    loss: Callable
    activation: Callable | None = None
    temperature: float | None = None

    def teaching(self, outputs: Sequence[Callable], settings: DistillationSettings) -> Teaching:
        """Makes the teaching of teachers.

        Args:
            outputs: For each teacher a function from the inputs and labels of a batch to outputs.
            settings: Settings, complete.
        """
        if self.activation is None:
            return Teaching(outputs, self.loss, settings.weight)
        temperature = settings.temperature
        targets = [functools.partial(self._targets, one, temperature) for one in outputs]
        loss = functools.partial(self.loss, temperature=temperature)
        return Teaching(targets, loss, settings.weight)

    def _targets(self, outputs, temperature, inputs, labels):
        return self.activation(outputs(inputs, labels), temperature)


CLASSES = SoftTargets(soft_cross_entropy, tempered_softmax, 2.0)
"""Probabilities of labels, or of masked tokens."""

TOKENS = SoftTargets(soft_cross_entropy, tempered_softmax, 1.0)
"""Probabilities of generated tokens."""

DECISIONS = SoftTargets(soft_binary_cross_entropy, tempered_sigmoid, 2.0)
"""Probabilities of labels that do not exclude each other."""

VALUES = SoftTargets(squared_differences)
"""Numbers."""

VECTORS = SoftTargets(VectorTargets.loss)
"""Vectors of texts."""
