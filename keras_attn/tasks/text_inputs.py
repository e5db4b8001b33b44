"""Whole texts as the inputs of a task."""

import tensorflow as tf

from keras_attn.tasks.serving import IDS
from keras_attn.tasks.texts import (
    batches_by_length,
    beginning,
    check_positions,
    check_texts,
    example_texts,
    framed_ids,
    ids_with_end,
    real_ids,
)
from keras_attn.tasks.token_view import TokenView, read_source
from keras_attn.tasks.whole_inputs import WholeInputTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require_positive


class TextInputs(WholeInputTask):
    """Base class of tasks whose inputs are texts.

    Attributes:
        tokenizer: Tokenizer of the texts.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether the start token is before a text, as in BERT.
        truncate: Whether longer texts are truncated; otherwise they are an error.
    """

    served_input = "text"
    tokenizer: Tokenizer
    max_length: int
    with_start: bool
    truncate: bool

    def _read_with(
        self, tokenizer: Tokenizer, max_length: int, with_start: bool, truncate: bool
    ) -> None:
        """Sets the attributes.

        Raises:
            UserError: The length is not positive, or exceeds the model's positions.
        """
        require_positive(max_length=max_length)
        check_positions(self.backbone, max_length, max_length=max_length)
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
        if self.truncate:
            texts = [beginning(text, self.max_length) for text in texts]
        return texts, batches_by_length(
            self.tokenizer, texts, "text", self.max_length, self.frame, self.truncate
        )
