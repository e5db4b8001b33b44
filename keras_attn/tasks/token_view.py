"""Inputs of a model together with the text of each token."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_attn.tokenizers import ByteLevelBpeTokenizer, Tokenizer

EMPTY = "∅"
"""Name of a token without characters; "" is padding."""


@dataclasses.dataclass(frozen=True)
class TokenView:
    """A batch of texts, in a graph or before it.

    Attributes:
        inputs: Inputs of the model.
        source: The tokens of what an encoder reads, strings (batch, length) with "" as padding.
        target: The same for the inputs of a decoder.
        written: For each token of the target the one that is written after it.
    """

    inputs: dict[str, tf.Tensor]
    source: tf.Tensor | None = None
    target: tf.Tensor | None = None
    written: tf.Tensor | None = None


def read_source(tokenizer: Tokenizer, ids: tf.Tensor) -> TokenView:
    """Returns the view of a model that reads one text.

    Args:
        tokenizer: Of the text.
        ids: int32 (batch, length), 0 as padding.
    """
    return TokenView({"token_ids": ids}, source=token_texts(tokenizer, ids))


def token_texts(tokenizer: Any, ids: tf.Tensor) -> tf.Tensor:
    """Returns the text of each token.

    Args:
        tokenizer: Its tokenizer.
        ids: int32 (batch, length).

    Returns:
        Strings (batch, length): "" at padding, "∅" where a token has no text.
    """
    texts = tokenizer.tokens_of(ids)
    if isinstance(tokenizer, ByteLevelBpeTokenizer):
        # Its vocabulary is written in characters that represent bytes.
        decoded = tf.reshape(tokenizer.detokenize(tf.reshape(ids, [-1, 1])), tf.shape(ids))
        is_special = (ids == tokenizer.start_id) | (ids == tokenizer.end_id)
        texts = tf.where(is_special, texts, decoded)
    return tf.where(ids == tokenizer.pad_id, "", tf.where(texts == "", EMPTY, texts))
