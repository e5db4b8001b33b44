"""Tokenization of texts whose words are tokenized one by one, each once."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_attn.data.in_order import in_order
from keras_attn.tokenizers import Tokenizer

_MOST_WORDS = 300_000


class WordTable:
    """The ids of the words that occurred so far.

    Args:
        tokenizer: A tokenizer with `splits_at_spaces`.

    Examples:
        >>> tokenizer = train_tokenizer("sentencepiece", ["a cab", "a bad cab"], vocabulary_size=16)
        >>> (ids, lengths), *_ = WordTable(tokenizer).rows([["bad cab", "cab"]])
        >>> ids.tolist() == tokenizer.tokenize(["bad cab", "cab"]).values.numpy().tolist()
        True
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        strings = [tf.TensorSpec([None], tf.string)]
        self._encode = tf.function(tokenizer.tokenize, strings).get_concrete_function()
        self._split = tf.function(_split, strings).get_concrete_function()
        self._forget()

    def rows(
        self, blocks: Iterable[Sequence[str | bytes]]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Turns texts into ids.

        Args:
            blocks: The texts in pieces.

        Yields:
            Of each piece the ids of all texts, concatenated, int32, and the number of each, int64.
        """
        for words, which, counts in in_order(self._words_of, blocks):
            numbers = self._numbers_of(words)[which]
            lengths = self._lengths[numbers]
            ends = np.cumsum(lengths)
            places = np.repeat(self._begins[numbers] - ends + lengths, lengths)
            ids = self._ids[places + np.arange(len(places))]
            ends_of_texts = np.concatenate([[0], ends])[np.cumsum(counts)]
            yield ids, np.diff(ends_of_texts, prepend=0)

    def _forget(self) -> None:
        self._number: dict[bytes, int] = {}
        self._ids = np.zeros(0, np.int32)
        self._begins = self._lengths = np.zeros(0, np.int64)

    def _words_of(self, texts: Sequence[str | bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The different words of texts, which of them each word is, and the words of each text."""
        with tf.device("CPU"):
            found = self._split(tf.constant(texts, tf.string))
        words, which, counts = (part.numpy() for part in found)
        return words, which, counts

    def _numbers_of(self, words: np.ndarray) -> np.ndarray:
        """Places of words in the table, which they are added to."""
        if len(self._number) > _MOST_WORDS:
            self._forget()
        listed = words.tolist()
        new = [word for word in listed if word not in self._number]
        if new:
            with tf.device("CPU"):
                rows = self._encode(tf.constant(new, tf.string))
            begins = rows.row_starts().numpy() + len(self._ids)
            first = len(self._number)
            self._number.update(zip(new, range(first, first + len(new)), strict=True))
            self._ids = np.concatenate([self._ids, rows.values.numpy()])
            self._begins = np.concatenate([self._begins, begins])
            self._lengths = np.concatenate([self._lengths, rows.row_lengths().numpy()])
        return np.array([self._number[word] for word in listed], np.int64)


def _split(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    words = tf.strings.split(strings, " ")
    different, which = tf.unique(words.values)
    return different, which, words.row_lengths()
