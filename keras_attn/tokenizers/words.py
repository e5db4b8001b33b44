"""Texts as words that are tokenized separately."""

import tensorflow as tf

from keras_attn.tokenizers.base import Tokenizer


def split_words(text: str) -> list[str]:
    """Splits a text at ASCII white space, as `word_pieces` does in a graph.

    Args:
        text: The text.

    Examples:
        >>> split_words("Anna lives in Rome .")
        ['Anna', 'lives', 'in', 'Rome', '.']
    """
    return [word.decode() for word in text.encode().split()]


def word_pieces(tokenizer: Tokenizer, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts at ASCII white space, and tokenizes each word separately.

    Args:
        tokenizer: Tokenizer of the words.
        texts: Strings (batch,).

    Returns:
        The words, strings (batch, None), and their ids, int32 (batch, None, None), both ragged. A
        word without a token is unknown: each has at least one id.

    Examples:
        >>> tokenizer = CharacterTokenizer("ab ")
        >>> [part.to_list() for part in word_pieces(tokenizer, ["ab b"])]
        [[[b'ab', b'b']], [[[4, 5], [5]]]]
    """
    words = tf.strings.split(texts)
    pieces = tokenizer.tokenize(words.values)
    unknown = tf.fill([pieces.nrows(), 1], tf.constant(tokenizer.unknown_id, pieces.dtype))
    missing = tf.cast(pieces.row_lengths() == 0, tf.int64)
    pieces = tf.concat([pieces, tf.RaggedTensor.from_tensor(unknown, lengths=missing)], axis=1)
    return words, words.with_values(pieces)
