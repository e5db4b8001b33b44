"""Base class of tasks whose models read the token ids of one text."""

from collections.abc import Callable

import tensorflow as tf

from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.serving import IDS, TEXTS, ServingFunction
from keras_attn.tasks.texts import example_texts, framed_ids
from keras_attn.tasks.token_view import TokenView, read_source
from keras_attn.tokenizers import Tokenizer


class TextTask(Task):
    """Base class of tasks whose models read texts between a start and an end token.

    Attributes:
        tokenizer: Tokenizer of the texts.
        max_length: Maximum number of tokens of a text, including start and end tokens.
    """

    tokenizer: Tokenizer
    max_length: int

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts, with start and end tokens around each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """
        return framed_ids(self.tokenizer, texts, self.max_length, "text", truncate=False)

    def read_tokens(self, text: tf.Tensor) -> TokenView:
        """Tokenizes texts for the model and names their tokens.

        Args:
            text: Strings (batch,).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length (see `input_ids`).
        """
        return read_source(self.tokenizer, self.input_ids(text))

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens."""
        return example_texts(self.tokenizer, self.max_length - 1)

    def _signatures(self, from_text: Callable, from_ids: Callable) -> dict[str, ServingFunction]:
        """The signatures that all such tasks have."""
        return {
            "serving_default": ServingFunction(from_text, {"text": TEXTS}),
            "token_ids": self._ids_signature(from_ids),
            "attention": attention_function(self.backbone, self.read_tokens, {"text": TEXTS}),
        }

    def _ids_signature(self, from_ids: Callable) -> ServingFunction:
        return ServingFunction(
            from_ids,
            {"token_ids": IDS},
            lambda texts: {"token_ids": self.input_ids(tf.constant(texts))},
            longest={"token_ids": self.max_length},
        )
