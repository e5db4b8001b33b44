"""Vectors of teachers as targets for those of a student."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.data import Pairs
from keras_attn.data.split import numbered
from keras_attn.tasks import EmbeddingTask
from keras_attn.training.distillation_settings import MSE


def texts_by_number(pairs: Pairs) -> list[str]:
    """The different texts of pairs, in the order of their numbers in `PartnerExamples`."""
    numbers = numbered(pairs.sources, pairs.targets).reshape(-1)
    _, first = np.unique(numbers, return_index=True)
    sides = (pairs.sources, pairs.targets)
    return [sides[place % 2][place // 2] for place in first.tolist()]


def joint_vectors(teachers: Sequence[EmbeddingTask], texts: list[str]) -> np.ndarray:
    """Computes the vectors of texts that teachers give together.

    Args:
        teachers: The teachers.
        texts: The texts.

    Returns:
        float32 (texts, features): the vectors of one teacher, or those of all, one after the other,
        whose dot products are the means of the teachers' dot products.
    """
    return np.concatenate([one.predict(texts) for one in teachers], axis=1) / len(teachers) ** 0.5


def projection(vectors: np.ndarray, features: int) -> np.ndarray:
    """Makes the matrix to a number of features that keeps dot products best.

    Args:
        vectors: Floating (texts, size).
        features: Number of features.

    Returns:
        float32 (size, features): the principal directions of the vectors; for no more features than
        they have, these and zeros.
    """
    size = vectors.shape[1]
    if features >= size:
        return np.eye(size, features, dtype=np.float32)
    wide = vectors.astype(np.float64)
    _, directions = np.linalg.eigh(wide.T @ wide)  # those of the largest values last
    return directions[:, : -features - 1 : -1].astype(np.float32)


@dataclass(frozen=True)
class VectorTargets:
    """The target of each text of some examples, and the loss of a student by them.

    Attributes:
        task: The student.
        table: Vectors by the numbers of texts, (texts + 1, features); the first one is padding's.
        kind: "cosine" or "mse".
    """

    task: EmbeddingTask
    table: tf.Variable
    kind: str

    @classmethod
    def of(cls, task: EmbeddingTask, vectors: np.ndarray, kind: str) -> "VectorTargets":
        """Keeps vectors, which begin with that of text number 1, in a variable."""
        rows = np.pad(vectors.astype(np.float32), ((1, 0), (0, 0)))
        return cls(task, tf.Variable(rows, trainable=False), kind)

    def targets(self, inputs: Any, labels: tf.Tensor) -> tf.Tensor:
        """Looks up the targets of a batch of `PartnerExamples`, (2 · pairs, features)."""
        del inputs
        return tf.gather(self.table, tf.reduce_max(labels, axis=1))

    def loss(self, labels: tf.Tensor, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Sums the losses of a batch's pairs, each the mean of its two texts.

        Args:
            labels: int32 (2 · pairs, length), 0 at padding.
            outputs: What the student's backbone returned.
            targets: What `targets` returned.
        """
        vectors = self.task.vectors_of(outputs, labels != 0)
        targets = tf.cast(targets, vectors.dtype)
        if self.kind == MSE:
            losses = tf.reduce_mean(tf.square(vectors - targets), axis=1)
        else:
            ours, theirs = (
                tf.math.l2_normalize(one, axis=1, epsilon=1e-24) for one in (vectors, targets)
            )
            losses = 1 - tf.reduce_sum(ours * theirs, axis=1)
        real = tf.reduce_max(labels, axis=1) > 0
        return tf.reduce_sum(tf.where(real, losses, tf.zeros_like(losses))) / 2

    def validation_loss(self) -> Callable:
        """A loss as that of a task, without one by the labels."""

        def loss(labels: tf.Tensor, outputs: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
            _, nll, count, correct = self.task.loss(labels, outputs, label_smoothing)
            taught = self.loss(labels, outputs, self.targets(None, labels))
            return tf.cast(taught, nll.dtype), nll, count, correct

        return loss
