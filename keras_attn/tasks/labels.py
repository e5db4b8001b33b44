"""Base classes of tasks whose models output logits over labels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.tasks.base import Task
from keras_attn.tasks.hypothesis import Hypothesis, best_text
from keras_attn.tasks.serving import ServingFunction, first_and_numbers
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.whole_inputs import WholeInputTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_positive


class LabelTask(Task):
    """Base class of tasks that assign labels to inputs or to their words.

    Args:
        backbone: A model to logits (..., labels).
        tokenizers: The tokenizers by role.
        labels: The labels, in the order of the logits.

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abc"), ["noun", "verb"])
        >>> isinstance(task, LabelTask), task.labels
        (True, ['noun', 'verb'])
    """

    _fewest_labels: ClassVar[int] = 2

    def __init__(
        self, backbone: keras.Model, tokenizers: Mapping[str, Tokenizer], labels: Sequence[str]
    ):
        super().__init__(backbone, tokenizers)
        labels = check_texts("labels", labels)
        least = self._fewest_labels
        require(
            len(labels) >= least,
            f"At least {'two labels are' if least > 1 else 'one label is'} needed.",
            labels=labels,
        )
        require(len(set(labels)) == len(labels), "No label may be repeated.", labels=labels)
        columns = backbone.output_shape[-1]
        require(
            columns == len(labels),
            "The number of labels must equal the number of logits.",
            labels=len(labels),
            logits=columns,
        )
        self.labels = labels
        self.class_weights: Sequence | None = None

    def loss(self, labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the cross-entropy, as returned by `token_cross_entropy`.

        The loss of each label is multiplied by its number in `class_weights`, if they are set.

        Args:
            labels: int32 (...,), counted from 1; 0 for no label, for example at padding.
            logits: Floating, (..., labels).
            label_smoothing: Fraction of the probability spread over the labels.
        """
        return token_cross_entropy(labels, logits, label_smoothing, 1, self.class_weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {len(self.labels)} labels)"


class BaseClassificationTask(LabelTask, WholeInputTask):
    """Base class of tasks that classify whole inputs, such as texts or the contents of files.

    Args:
        backbone: A model to logits (batch, labels), such as `keras_attn.models.SequenceClassifier`.
        tokenizers: The tokenizers by role.
        labels: The labels, in the order of the logits.

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abc"), ["noun", "verb"])
        >>> task.probabilities(["cab", "bac", "a"]).shape
        (3, 2)
        >>> [[best, second]] = task.predict_n_best(["cab"], n_best=2)
        >>> sorted([best.text, second.text])
        ['noun', 'verb']
    """

    def predict(self, inputs: Sequence[Any]) -> list[Any]:
        """Predicts the most probable label of each input.

        Raises:
            UserError: An input is invalid (see `probabilities`).
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(inputs, 1)]

    def predict_n_best(
        self,
        inputs: Sequence[Any],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the most probable labels of each input.

        Args:
            inputs: Inputs of `probabilities`.
            n_best: Number of labels for each.
            beams: Must be `None`: a classifier has no beam search.
            progress: Called with the number of inputs done after each batch.

        Returns:
            For each input its labels with their log-probabilities, the most probable first.

        Raises:
            UserError: An input is invalid, `n_best` exceeds the number of labels, or `beams` is
                given.
        """
        require_positive(n_best=n_best)
        require(
            n_best <= len(self.labels),
            "`n_best` must not exceed the number of labels.",
            n_best=n_best,
            labels=len(self.labels),
        )
        require(beams is None, "A classifier has no beam search.", beams=beams)
        probabilities = self.probabilities(inputs, progress)
        with np.errstate(divide="ignore"):
            scores = np.log(probabilities)
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :n_best]
        return [
            [Hypothesis(self.labels[place], *[float(row[place])] * 2) for place in places]
            for row, places in zip(scores, order, strict=True)
        ]

    def probabilities(
        self, inputs: Sequence[Any], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Computes the probability of each label.

        Args:
            inputs: The inputs.
            progress: Called with the number of inputs done after each batch.

        Returns:
            float32 (inputs, labels).

        Raises:
            UserError: An input is invalid.
        """
        return self._computed(inputs, progress)

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""

        def best(probabilities):
            places = tf.argmax(probabilities, axis=1)
            return {
                "label": tf.gather(tf.constant(self.labels), places),
                "probability": tf.gather(probabilities, places, batch_dims=1),
            }

        def several(probabilities):
            highest, places = tf.math.top_k(probabilities, min(n_best, len(self.labels)))
            return {"label": tf.gather(tf.constant(self.labels), places), "probability": highest}

        answers = {"serving_default": best, "n_best": several}
        compared = {"n_best": first_and_numbers}
        return self._signatures(answers, "probabilities", jit, compared)

    def _activated(self, outputs):
        return tf.nn.softmax(outputs)
