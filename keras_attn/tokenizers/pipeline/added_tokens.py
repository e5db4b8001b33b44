"""Added tokens of a `tokenizer.json`, which are found in texts before they are split."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.code_points import code_points
from keras_attn.tokenizers.pipeline.patterns import spelled
from keras_attn.tokenizers.pipeline.words import Words
from keras_attn.tokenizers.special_text import CUT, longest_of

_SPACES, _WORDS = spelled(code_points("spaces")), spelled(code_points("words"))


class AddedToken(NamedTuple):
    """A token that is found in texts.

    Attributes:
        content: Its text.
        special: Whether it has a purpose, and is no text.
        single_word: Whether it is found only beside no letter or digit.
        lstrip: Whether spaces before it are dropped.
        rstrip: Whether spaces after it are dropped.
        normalized: Whether it is looked for in normalized texts, as its normalized text.
    """

    content: str
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True


class AddedTokenSplitter(tf.Module):
    """Cuts tokens out of texts.

    Args:
        tokens: The tokens by the text that is looked for.
        ids: Their ids in the same order.
    """

    def __init__(self, tokens: Mapping[str, AddedToken], ids: Sequence[int]) -> None:
        super().__init__(name="added_tokens")
        self._pattern = longest_of(tokens)
        # By the place of a token, and last for what is none.
        self._ids = tf.constant([*ids, -1], tf.int32)
        flags = [[*token[2:5]] for token in tokens.values()]
        self._flags = tf.constant(np.array([*flags, [False] * 3]).T, tf.bool)
        self._some = [any(row) for row in zip(*flags, strict=True)]
        self._place_of_text = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([text.encode() for text in tokens], tf.string),
                tf.range(len(tokens), dtype=tf.int32),
            ),
            default_value=len(tokens),
        )

    def __call__(self, words: Words) -> tuple[Words, tf.Tensor]:
        """Cuts texts.

        Args:
            words: The texts.

        Returns:
            Their parts that are not empty, and the id of each, -1 if it is no token.
        """
        marked = tf.strings.regex_replace(words.strings, self._pattern, CUT + rb"\1" + CUT)
        pieces = tf.strings.split(marked, CUT)
        parts = words.with_parts(pieces)
        place = self._place_of_text.lookup(parts.strings)
        single_word, left, right = self._some
        if single_word:
            parts, place = self._without_parts_of_words(parts, pieces.value_rowids(), place)
        strings = parts.strings
        # Cuts are around tokens, so that a part lies between two tokens or at an end.
        if left:
            strips = tf.concat([tf.gather(self._flags[1], place)[1:], [False]], axis=0)
            same = tf.concat([parts.rows[1:] == parts.rows[:-1], [False]], axis=0)
            strings = tf.where(
                strips & same, tf.strings.regex_replace(strings, rf"{_SPACES}+\z", ""), strings
            )
        if right:
            strips = tf.concat([[False], tf.gather(self._flags[2], place)[:-1]], axis=0)
            same = tf.concat([[False], parts.rows[1:] == parts.rows[:-1]], axis=0)
            strings = tf.where(
                strips & same, tf.strings.regex_replace(strings, rf"\A{_SPACES}+", ""), strings
            )
        ids = tf.gather(self._ids, place)
        kept = tf.strings.length(strings) > 0
        return parts._replace(strings=strings).where(kept), tf.boolean_mask(ids, kept)

    def _without_parts_of_words(
        self, parts: Words, texts: tf.Tensor, place: tf.Tensor
    ) -> tuple[Words, tf.Tensor]:
        """Joins tokens that must be words of their own, and are not, with what is beside them."""
        ends = tf.strings.regex_full_match(parts.strings, rf"(?s).*{_WORDS}")
        begins = tf.strings.regex_full_match(parts.strings, rf"(?s){_WORDS}.*")
        same = texts[1:] == texts[:-1]
        after = tf.concat([[False], same & ends[:-1]], axis=0)
        before = tf.concat([same & begins[1:], [False]], axis=0)
        none = tf.size(self._ids) - 1
        # Two tokens in a row have an empty part between them, which must not hide the other.
        after |= self._beyond_empty(parts.strings, ends, texts, 1)
        before |= self._beyond_empty(parts.strings, begins, texts, -1)
        place = tf.where(tf.gather(self._flags[0], place) & (after | before), none, place)
        is_text = place == none
        joined = tf.concat([[False], same & is_text[1:] & is_text[:-1]], axis=0)
        group = tf.cumsum(tf.cast(~joined, tf.int32)) - 1
        count = tf.reduce_sum(tf.cast(~joined, tf.int32))
        strings = tf.strings.unsorted_segment_join(parts.strings, group, count)
        first = parts.where(~joined)._replace(strings=strings)
        return first, tf.boolean_mask(place, ~joined)

    def _beyond_empty(
        self, strings: tf.Tensor, found: tf.Tensor, texts: tf.Tensor, places: int
    ) -> tf.Tensor:
        """What was found two places before or after, if there is nothing between."""
        size = tf.size(texts)
        index = tf.range(size)
        there, between = (
            tf.clip_by_value(index - places * steps, 0, tf.maximum(size - 1, 0)) for steps in (2, 1)
        )
        same = (tf.gather(texts, there) == texts) & (there != index) & (there != between)
        empty = tf.strings.length(tf.gather(strings, between)) == 0
        return same & empty & tf.gather(found, there)
