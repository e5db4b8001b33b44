"""Text to one of several labels."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.tasks.base import Task
from keras_attn.tasks.hypothesis import Hypothesis, best_text
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.text_ids import batches_by_length, example_texts, ids_with_end
from keras_attn.tasks.texts import check_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_positive

_TEXTS = tf.TensorSpec([None], tf.string)
_IDS = tf.TensorSpec([None, None], tf.int32)


class ClassificationTask(Task):
    """Gives texts their labels.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits (batch, labels),
            as `keras_attn.models.SequenceClassifier`.
        tokenizer: Tokenizer of the texts.
        labels: What the columns of the logits stand for.
        max_length: Most tokens of a text, the end token included.

    Raises:
        UserError: There are fewer than two labels, two are equal, they are not as many as the
            logits, or the length exceeds the model's positions.
    """

    kind = "classify"

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
    ):
        super().__init__(backbone, {"text": tokenizer})
        require_positive(max_length=max_length)
        labels = check_texts("labels", labels)
        require(len(labels) > 1, "There must be at least two labels.", labels=labels)
        require(len(set(labels)) == len(labels), "The labels must differ.", labels=labels)
        columns = backbone.output_shape[-1]
        require(
            columns == len(labels),
            "There must be as many labels as logits.",
            labels=len(labels),
            logits=columns,
        )
        positions = getattr(backbone, "max_length", None)
        require(
            positions is None or max_length <= positions,
            "`max_length` must not exceed the model's positions.",
            positions=positions,
            max_length=max_length,
        )
        self.tokenizer = tokenizer
        self.labels = labels
        self.max_length = max_length
        self._probabilities = tf.function(
            self._probabilities_of_texts, input_signature=[_TEXTS], autograph=False
        )

    def _settings(self):
        return {"labels": self.labels, "max_length": self.max_length}

    @classmethod
    def _from_parts(cls, backbone, tokenizers, settings):
        return cls(backbone, tokenizers["text"], settings["labels"], settings["max_length"])

    @staticmethod
    def loss(labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the cross-entropy, as `token_cross_entropy` gives them.

        Args:
            labels: int32 (batch,), counted from 1; 0 for a row of padding.
            logits: Floating, (batch, labels).
            label_smoothing: Share of the probability spread over the labels.
        """
        return token_cross_entropy(labels, logits, label_smoothing, first_label=1)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Gives each text its most probable label.

        Raises:
            UserError: A text is longer than the task's maximum, or no text at all.
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Gives each text its most probable labels.

        Args:
            texts: The texts.
            n_best: Number of labels for each.
            beams: Not for labels: `None`.
            progress: Called with the number of texts done after each batch.

        Returns:
            For each text its labels with their log-probabilities, the most probable first.

        Raises:
            UserError: A text is longer than the task's maximum, there are not `n_best` labels, or
                `beams` is given.
        """
        require_positive(n_best=n_best)
        require(
            n_best <= len(self.labels),
            "`n_best` must not exceed the number of labels.",
            n_best=n_best,
            labels=len(self.labels),
        )
        require(beams is None, "A classifier makes no beam search.", beams=beams)
        probabilities = self.probabilities(texts, progress)
        with np.errstate(divide="ignore"):
            scores = np.log(probabilities)
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :n_best]
        return [
            [Hypothesis(self.labels[place], *[float(row[place])] * 2) for place in places]
            for row, places in zip(scores, order, strict=True)
        ]

    def probabilities(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Computes how probable each label is.

        Args:
            texts: The texts.
            progress: Called with the number of texts done after each batch.

        Returns:
            float32 (texts, labels).

        Raises:
            UserError: A text is longer than the task's maximum, or no text at all.
        """
        texts = check_texts("texts", texts)
        results = np.zeros((len(texts), len(self.labels)), np.float32)
        for positions in batches_by_length(self.tokenizer, texts, "text", self.max_length):
            batch = tf.constant([texts[position] for position in positions])
            results[positions] = self._probabilities(batch).numpy()
            if progress:
                progress(len(positions))
        return results

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Turns texts into ids, an end id after each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text is longer than the task's maximum.
        """
        return ids_with_end(self.tokenizer, texts, self.max_length, "text")

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Gives the functions that an exported task serves (see `keras_attn.tasks.serving`)."""
        classify = self._classify
        if jit:
            classify = tf.function(classify, jit_compile=True, autograph=False)

        def best(text):
            probabilities = classify(self.input_ids(text))
            places = tf.argmax(probabilities, axis=1)
            return {
                "label": tf.gather(tf.constant(self.labels), places),
                "probability": tf.gather(probabilities, places, batch_dims=1),
            }

        def several(text):
            probabilities, places = tf.math.top_k(
                classify(self.input_ids(text)), min(n_best, len(self.labels))
            )
            return {
                "label": tf.gather(tf.constant(self.labels), places),
                "probability": probabilities,
            }

        def token_ids(token_ids):
            return {"probabilities": classify(token_ids)}

        return {
            "serving_default": ServingFunction(best, {"text": _TEXTS}),
            "n_best": ServingFunction(several, {"text": _TEXTS}),
            "token_ids": ServingFunction(
                token_ids,
                {"token_ids": _IDS},
                lambda texts: {"token_ids": self.input_ids(tf.constant(texts))},
            ),
        }

    def example_texts(self) -> list[str]:
        """Gives a few texts of unequal lengths, made of the commonest tokens."""
        return example_texts(self.tokenizer, self.max_length)

    def resources(self) -> list:
        """Gives all that the serving functions use."""
        return [self.tokenizer, *self.backbone.variables]

    def _probabilities_of_texts(self, texts):
        return self._classify(self.input_ids(texts))

    def _classify(self, token_ids):
        return tf.nn.softmax(tf.cast(self.backbone({"token_ids": token_ids}), tf.float32))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {len(self.labels)} labels)"
