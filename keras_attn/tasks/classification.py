"""Text classification."""

from collections.abc import Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from keras_attn.tasks.labels import BaseClassificationTask
from keras_attn.tasks.serving import IDS
from keras_attn.tasks.texts import (
    batches_by_length,
    check_positions,
    check_texts,
    example_texts,
    framed_ids,
    ids_with_end,
    real_ids,
)
from keras_attn.tasks.token_view import TokenView, read_source
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require_positive


class ClassificationTask(BaseClassificationTask):
    """Classifies texts.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits (batch, labels),
            such as `keras_attn.models.SequenceClassifier`.
        tokenizer: Tokenizer of the texts.
        labels: The labels, in the order of the logits.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether to put the start token before a text, as BERT does.
        truncate: Whether to truncate longer texts; otherwise they are an error.

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits, or the
            length exceeds the model's positions.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = SequenceClassifier(TransformerEncoder(9, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abdgo"), ["negative", "positive"])
        >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> model.compile(keras.optimizers.Adam(0.01), loss)
        >>> inputs = {"token_ids": task.input_ids(["bad", "good"])}
        >>> losses = [model.train_on_batch(inputs, np.array([0, 1])) for update in range(100)]
        >>> task.predict(["good"])
        ['positive']
    """

    kind = "classification"
    served_input = "text"
    _saved = ("labels", "max_length", "with_start", "truncate")
    _saved_later: ClassVar = {"with_start": False, "truncate": False}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
    ):
        super().__init__(backbone, {"text": tokenizer}, labels)
        require_positive(max_length=max_length)
        check_positions(backbone, max_length, max_length=max_length)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.with_start = bool(with_start)
        self.truncate = bool(truncate)

    @property
    def frame(self) -> int:
        """Number of special tokens around a text."""
        return 2 if self.with_start else 1

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts, adding the end token and, depending on the task, the start token.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length, and the task does not
                truncate.
        """
        if self.with_start:
            return framed_ids(self.tokenizer, texts, self.max_length, "text", self.truncate)
        return ids_with_end(self.tokenizer, texts, self.max_length, "text", self.truncate)

    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Tokenizes texts for the model and names their tokens.

        Args:
            strings: Strings (batch,).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length, and the task does not
                truncate.
        """
        return read_source(self.tokenizer, self.input_ids(strings))

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens."""
        return example_texts(self.tokenizer, self.max_length + 1 - self.frame)

    @property
    def _encoding(self):
        return "token_ids", IDS, {"token_ids": self.max_length}

    def _encoded(self, strings):
        return self.input_ids(strings)

    def model_inputs(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for ids, in which 0 is padding at any position."""
        return {"token_ids": real_ids(encoded)}

    def _batches(self, inputs):
        texts = check_texts("texts", inputs)
        return texts, batches_by_length(
            self.tokenizer, texts, "text", self.max_length, self.frame, self.truncate
        )
