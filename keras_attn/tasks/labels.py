"""Base classes of tasks whose models output logits over labels."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import Hypothesis, best_text, in_batches
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.token_view import TokenView
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

    def __init__(
        self, backbone: keras.Model, tokenizers: Mapping[str, Tokenizer], labels: Sequence[str]
    ):
        super().__init__(backbone, tokenizers)
        labels = check_texts("labels", labels)
        require(len(labels) > 1, "At least two labels are needed.", labels=labels)
        require(len(set(labels)) == len(labels), "No label may be repeated.", labels=labels)
        columns = backbone.output_shape[-1]
        require(
            columns == len(labels),
            "The number of labels must equal the number of logits.",
            labels=len(labels),
            logits=columns,
        )
        self.labels = labels
        self.class_weights: list[float] | None = None

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


class BaseClassificationTask(LabelTask):
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

    served_input: ClassVar[str]
    """Name of the strings in the signatures of an export."""

    def __init__(
        self, backbone: keras.Model, tokenizers: Mapping[str, Tokenizer], labels: Sequence[str]
    ):
        super().__init__(backbone, tokenizers, labels)
        self._probabilities = ModelGraph(backbone, self._probabilities_of, [TEXTS])

    def predict(self, inputs: Sequence[Any]) -> list[str]:
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
        inputs, batches = self._batches(inputs)

        def classify(batch):
            return [self._probabilities(tf.constant(batch)).numpy()]

        rows = in_batches(batches, classify, inputs, progress=progress)
        return np.array(rows, np.float32).reshape(len(inputs), len(self.labels))

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        classify = compiled(self._classify, jit)
        strings = {self.served_input: TEXTS}

        def best(**strings):
            probabilities = classify(self._encoded(*strings.values()))
            places = tf.argmax(probabilities, axis=1)
            return {
                "label": tf.gather(tf.constant(self.labels), places),
                "probability": tf.gather(probabilities, places, batch_dims=1),
            }

        def several(**strings):
            probabilities = classify(self._encoded(*strings.values()))
            highest, places = tf.math.top_k(probabilities, min(n_best, len(self.labels)))
            return {"label": tf.gather(tf.constant(self.labels), places), "probability": highest}

        def numeric(**encoded):
            return {"probabilities": classify(*encoded.values())}

        name, spec, longest = self._encoding
        return {
            "serving_default": ServingFunction(best, strings),
            "n_best": ServingFunction(several, strings),
            name: ServingFunction(
                numeric,
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

    def _probabilities_of(self, strings):
        return self._classify(self._encoded(strings))

    def _classify(self, encoded):
        logits = self.backbone(self.model_inputs(encoded))
        return tf.nn.softmax(tf.cast(logits, tf.float32))
