"""Classification of texts with several labels each."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.ops.binary_cross_entropy import binary_cross_entropy
from keras_attn.tasks.classification import ClassificationTask
from keras_attn.tasks.hypothesis import LabelSet
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require

THRESHOLD = 0.5


class MultiLabelClassificationTask(ClassificationTask):
    """Finds the labels of texts; a text may have any number of them.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits (batch, labels),
            such as `keras_attn.models.SequenceClassifier`. A sigmoid makes probabilities of them.
        tokenizer: Tokenizer of the texts.
        labels: The labels, in the order of the logits.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether to put the start token before a text, as BERT does.
        truncate: Whether to truncate longer texts; otherwise they are an error.
        thresholds: Smallest probability of each label that is predicted; 0.5 by default.

    Raises:
        UserError: There is no label, one is repeated, there are not as many as logits or
            thresholds, a threshold is not between 0 and 1, or the length exceeds the model's
            positions.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = SequenceClassifier(TransformerEncoder(9, **sizes), num_classes=2)
        >>> labels = ["has a", "has b"]
        >>> task = MultiLabelClassificationTask(model, CharacterTokenizer("abcde"), labels)
        >>> loss = keras.losses.BinaryCrossentropy(from_logits=True)
        >>> model.compile(keras.optimizers.Adam(0.02), loss)
        >>> inputs = {"token_ids": task.input_ids(["cab", "add", "bee", "cd"])}
        >>> targets = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
        >>> losses = [model.train_on_batch(inputs, targets) for update in range(100)]
        >>> task.predict(["add", "cd"])
        [['has a'], []]
    """

    kind = "multi_label_classification"
    _saved = ("labels", "max_length", "with_start", "truncate", "thresholds")
    _saved_later: ClassVar = {"with_start": False, "truncate": False}
    _fewest_labels: ClassVar[int] = 1

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
        thresholds: Sequence[float] | None = None,
    ):
        super().__init__(backbone, tokenizer, labels, max_length, with_start, truncate)
        if thresholds is None:
            thresholds = [THRESHOLD] * len(self.labels)
        require(
            len(thresholds) == len(self.labels) and all(0 < value < 1 for value in thresholds),
            "`thresholds` must be a number between 0 and 1 for each label.",
            thresholds=thresholds,
            labels=len(self.labels),
        )
        # As an export compares them.
        self.thresholds = [float(np.float32(value)) for value in thresholds]

    def loss(self, labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the cross-entropy of all decisions, as returned by `binary_cross_entropy`.

        Args:
            labels: int32 (batch, labels), 2 for a label that a text has, 1 for others, 0 at
                padding.
            logits: Floating (batch, labels).
            label_smoothing: Fraction of the probability spread over both answers.
        """
        return binary_cross_entropy(labels, logits, label_smoothing, self.class_weights)

    def predict(self, inputs: Sequence[str]) -> list[list[str]]:
        """Predicts the labels of each text, the most probable one first; a text may have none.

        Raises:
            UserError: An input is invalid (see `probabilities`).
        """
        return [list(found.labels) for found in self.label_sets(inputs)]

    def label_sets(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[LabelSet]:
        """Predicts the labels of each text, with the probabilities of all labels.

        Args:
            inputs: The texts.
            progress: Called with the number of texts done after each batch.

        Raises:
            UserError: An input is invalid.
        """
        thresholds = dict(zip(self.labels, self.thresholds, strict=True))
        found = []
        for row in self.probabilities(inputs, progress).tolist():
            ranked = sorted(zip(self.labels, row, strict=True), key=lambda pair: -pair[1])
            labels = tuple(label for label, value in ranked if value >= thresholds[label])
            found.append(LabelSet(labels, dict(ranked)))
        return found

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        del n_best  # all labels are answered

        def decided(probabilities):
            highest, places = tf.math.top_k(probabilities, len(self.labels))
            thresholds = tf.gather(tf.constant(self.thresholds), places)
            return {
                "labels": tf.gather(tf.constant(self.labels), places),
                "probabilities": highest,
                "predicted": highest >= thresholds,
            }

        name = "serving_default"
        return self._signatures({name: decided}, "probabilities", jit, {name: _by_label})

    def _activated(self, outputs):
        return tf.sigmoid(outputs)


def _by_label(ranked: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Decisions and probabilities by the names of labels: almost equal ones may change places."""
    order = np.argsort(ranked["labels"], axis=1)
    return {name: np.take_along_axis(array, order, axis=1) for name, array in ranked.items()}
