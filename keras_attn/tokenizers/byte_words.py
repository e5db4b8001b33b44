"""Splitting of text into GPT-2's words, with one character per byte."""

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.code_points import CodePointTable, code_points

_OTHER, _LETTER, _NUMBER, _SPACE = range(4)
_OUTSIDE = -1  # before the first and after the last code point of a text
_APOSTROPHE = ord("'")


def byte_characters() -> list[str]:
    """Returns the 256 characters that represent bytes in GPT-2's vocabulary files.

    Printable bytes of Latin-1 are represented by themselves, the others by U+0100 and following.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
    section 2.2, and the file `encoder.py` published with it.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    moved = {byte: 256 + position for position, byte in enumerate(others)}
    return [chr(moved.get(byte, byte)) for byte in range(256)]


class ByteCharacters(tf.Module):
    """Writes each byte of a text as a character."""

    def __init__(self) -> None:
        super().__init__(name="byte_characters")
        self._character_of_byte = tf.constant([ord(char) for char in byte_characters()], tf.int32)

    def __call__(self, strings: tf.Tensor) -> tf.Tensor:
        """Writes strings (batch,) with one character per byte."""
        content = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(strings), tf.uint8), tf.int32)
        characters = tf.RaggedTensor.from_row_lengths(
            tf.gather(self._character_of_byte, content), tf.strings.length(strings), validate=False
        )
        return tf.strings.unicode_encode(characters, "UTF-8")


class ByteWords(tf.Module):
    r"""Splits texts into GPT-2's words by its pattern.

    `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` looks ahead, which
    TensorFlow's regular expressions do not support. The beginning of a word depends only on a few
    neighbors, so that all beginnings are found at once.
    """

    def __init__(self) -> None:
        super().__init__(name="byte_words")
        classes = np.full(len(code_points("letters")), _OTHER, np.int32)
        for name, value in (("letters", _LETTER), ("numbers", _NUMBER), ("spaces", _SPACE)):
            classes[code_points(name)] = value
        self._class = CodePointTable(classes)
        self._character_of_byte = tf.constant([ord(char) for char in byte_characters()], tf.int32)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits a batch.

        Args:
            strings: String tensor (batch,), UTF-8; malformed bytes are read as U+FFFD.

        Returns:
            RaggedTensor of strings (batch, None): the words, with one character per byte.
        """
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        begins = self._begins(codes.values, codes.value_rowids())  # (code points,)
        words_before = tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int64))], axis=0)

        text = tf.strings.reduce_join(tf.strings.unicode_encode(codes, "UTF-8"))
        content = tf.cast(tf.io.decode_raw(text, tf.uint8), tf.int32)  # (bytes,)
        first_bytes = tf.boolean_mask(tf.cumsum(_byte_counts(codes.values), exclusive=True), begins)
        words = tf.RaggedTensor.from_row_splits(
            tf.gather(self._character_of_byte, content),
            tf.concat([first_bytes, [tf.size(content, tf.int64)]], axis=0),
            validate=False,
        )
        # Without a word the splits are [size], which is 0: no row.
        return tf.RaggedTensor.from_row_splits(
            tf.strings.unicode_encode(words, "UTF-8"),
            tf.gather(words_before, codes.row_splits),
            validate=False,
        )

    def _begins(self, codes: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Whether a word begins at each code point, given the text that it belongs to."""
        first = rows != _shifted(rows, 1, -1)
        last = rows != _shifted(rows, -1, -1)
        kind = self._class.lookup(codes)
        before = tf.where(first, _OUTSIDE, _shifted(kind, 1, _OUTSIDE))
        after = tf.where(last, _OUTSIDE, _shifted(kind, -1, _OUTSIDE))
        # One plain space belongs to the word that follows it.
        joined = ~first & (_shifted(codes, 1, 0) == ord(" "))

        # The last of several spaces before a word is a word of its own, or belongs to that word.
        ends_spaces = (kind == _SPACE) & (after != _SPACE) & (after != _OUTSIDE)
        begins = ((kind != before) & ~joined) | ends_spaces

        opens = (codes == _APOSTROPHE) & (before != _OTHER) & ~joined
        short, long = _contractions(codes, rows)
        short, long = opens & short, opens & long
        inside = _shifted(short | long, 1, False)
        return (begins & ~inside) | _shifted(short, 2, False) | _shifted(long, 3, False)


def _contractions(codes: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether one of s, t, m, d and one of re, ve, ll follow each code point in its text."""
    one = tf.where(_shifted(rows, -1, -1) == rows, _shifted(codes, -1, 0), 0)
    two = tf.where(_shifted(rows, -2, -1) == rows, _shifted(codes, -2, 0), 0)
    short = tf.reduce_any([one == ord(letter) for letter in "stmd"], axis=0)
    pairs = [(one == ord(a)) & (two == ord(b)) for a, b in ("re", "ve", "ll")]
    return short, tf.reduce_any(pairs, axis=0)


def _byte_counts(codes: tf.Tensor) -> tf.Tensor:
    longer = [tf.cast(codes >= first, tf.int64) for first in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(longer)


def _shifted(values: tf.Tensor, places: int, fill: int | bool) -> tf.Tensor:
    """Moves values of (length,) to the right, or to the left where `places` is negative."""
    count = abs(places)
    filling = tf.fill([count], tf.cast(fill, values.dtype))
    if places > 0:
        return tf.concat([filling, values], axis=0)[: tf.size(values)]
    return tf.concat([values, filling], axis=0)[count:]
