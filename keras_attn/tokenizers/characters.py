"""Tokenizer with one id per character."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from keras_attn.tokenizers.base import (
    MASK,
    SPECIAL_TOKENS,
    Tokenizer,
    frequent,
    ids_after_special_tokens,
    read_texts,
)
from keras_attn.validation import require


class CharacterTokenizer(Tokenizer):
    """Splits text into Unicode code points.

    `detokenize(tokenize(text))` is `text` for every text whose code points are all in the
    vocabulary (spaces, line ends, NUL and combining marks are characters like any other); others
    come back as `<unk>`. Each malformed UTF-8 sequence is read as U+FFFD, which is one more
    character: known if the vocabulary holds it.

    Args:
        characters: The vocabulary without special tokens: one code point each, none twice.
        lowercase: Whether text is lower-cased first.
        with_mask: Whether the vocabulary ends with `[MASK]`, which is recognized in texts.

    Raises:
        UserError: `characters` is empty, or an item is not a single character or appears twice.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> tokenizer.tokenize(["cab"]).to_list()
        [[6, 4, 5]]
    """

    kind = "characters"

    def __init__(
        self, characters: Sequence[str], lowercase: bool = False, with_mask: bool = False
    ) -> None:
        require(len(characters) > 0, "`characters` must not be empty.", characters=characters)
        for position, character in enumerate(characters):
            require(
                isinstance(character, str) and len(character) == 1,
                f"`characters[{position}]` must be a single character.",
                character=character,
            )
        super().__init__([*SPECIAL_TOKENS, *characters, *([MASK] if with_mask else [])], lowercase)
        self.with_mask = bool(with_mask)
        if with_mask:
            self._recognize_mask()
        codes = tf.constant([ord(character) for character in characters], tf.int32)
        self._id_of_code = ids_after_special_tokens(codes, self.unknown_id)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        min_count: int = 1,
        lowercase: bool = False,
        with_mask: bool = False,
    ) -> "CharacterTokenizer":
        """Collects the characters of some texts.

        Args:
            texts: Strings to count characters in.
            min_count: How often a character must occur to be in the vocabulary.
            lowercase: Whether text is lower-cased, now and in `tokenize`.
            with_mask: See the class.

        Returns:
            A tokenizer whose vocabulary is sorted by falling count, then by code point.

        Raises:
            UserError: No character occurs often enough, or an item of `texts` is not text.
        """
        counts: Counter[str] = Counter()
        for text in read_texts(texts, lowercase):
            counts.update(text)
        return cls(frequent(counts, min_count, "character"), lowercase, with_mask)

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        return codes.with_values(self._id_of_code.lookup(codes.values))

    def _tokenize_placed(self, strings, places):
        ids = self._tokenize(strings)
        return ids, ids.with_values(places), ids.with_values(places + 1)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__`."""
        characters = self.vocabulary[len(SPECIAL_TOKENS) : self.mask_id]
        config = {"characters": characters, "lowercase": self.lowercase}
        return config | ({"with_mask": True} if self.with_mask else {})
