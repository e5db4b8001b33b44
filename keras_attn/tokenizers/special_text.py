"""Special tokens in a text."""

import re
from collections.abc import Callable, Iterable, Mapping

import tensorflow as tf

CUT = b"\xff"
"""A byte that never occurs in UTF-8, to split at: the splitting at patterns of tensorflow-text ends
a text at its first NUL."""


class SpecialTextSplitter(tf.Module):
    """Recognizes special tokens in texts, and tokenizes the text between them separately.

    Args:
        ids: The id of each special token.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__(name="special_text")
        tokens = [*ids]
        self._pattern = longest_of(tokens)
        self._id_of_token = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([token.encode() for token in tokens], tf.string),
                tf.constant([ids[token] for token in tokens], tf.int32),
            ),
            default_value=-1,
        )

    def tokenize(
        self, strings: tf.Tensor, tokenize: Callable[[tf.Tensor], tf.RaggedTensor]
    ) -> tf.RaggedTensor:
        """Tokenizes texts.

        Args:
            strings: String tensor (batch,), UTF-8; malformed bytes are read as U+FFFD.
            tokenize: Turns strings (pieces,) without special tokens into ids (pieces, None).

        Returns:
            RaggedTensor int32 (batch, None).
        """
        strings = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")
        strings = tf.strings.regex_replace(strings, self._pattern, CUT + rb"\1" + CUT)
        pieces = tf.strings.split(strings, CUT)
        special = self._id_of_token.lookup(pieces.values)
        is_special = special >= 0
        ids = tokenize(tf.where(is_special, "", pieces.values))
        specials = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(special, is_special), tf.cast(is_special, tf.int64), validate=False
        )
        return pieces.with_values(tf.concat([specials, ids], axis=1)).merge_dims(1, 2)


def longest_of(tokens: Iterable[str]) -> str:
    """Returns a pattern of the longest of some texts that fits."""
    # RE2 does not support escaped characters outside ASCII.
    escaped = [
        re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", token)
        for token in sorted(tokens, key=len, reverse=True)
    ]
    return f"({'|'.join(escaped)})"
