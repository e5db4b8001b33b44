"""Tokenizer with one id per whitespace-separated symbol."""

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

_WHITESPACE = " \t\n\r\f\v"


class SymbolTokenizer(Tokenizer):
    """Splits text at whitespace: phonemes, labels, text that is already tokenized.

    Whitespace is space, tab, line feed, carriage return, form feed and vertical tab; any run of
    it is one separator, and `detokenize` writes one space. A symbol in a text that looks like a
    special token (`<s>`) is unknown, not special.

    Args:
        symbols: The vocabulary without special tokens; no whitespace within, none twice.
        lowercase: Whether text is lower-cased first.
        with_mask: Whether the vocabulary ends with `[MASK]`, which is recognized in texts.

    Raises:
        UserError: `symbols` is empty, or a symbol is empty, contains whitespace, appears twice or
            looks like a special token.

    Examples:
        >>> tokenizer = SymbolTokenizer(["AE", "K", "T"])
        >>> tokenizer.tokenize(["K AE T"]).to_list()
        [[5, 4, 6]]
    """

    kind = "symbols"
    separator = " "

    def __init__(
        self, symbols: Sequence[str], lowercase: bool = False, with_mask: bool = False
    ) -> None:
        require(len(symbols) > 0, "`symbols` must not be empty.", symbols=symbols)
        for position, symbol in enumerate(symbols):
            require(
                isinstance(symbol, str) and bool(symbol) and not set(symbol) & set(_WHITESPACE),
                f"`symbols[{position}]` must be text without whitespace.",
                symbol=symbol,
            )
        super().__init__([*SPECIAL_TOKENS, *symbols, *([MASK] if with_mask else [])], lowercase)
        self.with_mask = bool(with_mask)
        if with_mask:
            self._recognize_mask()
        keys = tf.constant([symbol.encode() for symbol in symbols], tf.string)
        self._id_of_symbol = ids_after_special_tokens(keys, self.unknown_id)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        min_count: int = 1,
        lowercase: bool = False,
        with_mask: bool = False,
    ) -> "SymbolTokenizer":
        """Collects the symbols of some texts.

        Args:
            texts: Strings to count symbols in.
            min_count: How often a symbol must occur to be in the vocabulary.
            lowercase: Whether text is lower-cased, now and in `tokenize`.
            with_mask: See the class.

        Returns:
            A tokenizer whose vocabulary is sorted by falling count, then by code points.

        Raises:
            UserError: No symbol occurs often enough, or an item of `texts` is not text.
        """
        counts: Counter[str] = Counter()
        for text in read_texts(texts, lowercase):
            # Bytes split at ASCII whitespace, as the graph does; str would split at more.
            counts.update(symbol.decode() for symbol in text.encode().split())
        for special in (*SPECIAL_TOKENS, *([MASK] if with_mask else [])):
            counts.pop(special, None)
        return cls(frequent(counts, min_count, "symbol"), lowercase, with_mask)

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        symbols = tf.strings.split(strings)
        return symbols.with_values(self._id_of_symbol.lookup(symbols.values))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__`."""
        symbols = self.vocabulary[len(SPECIAL_TOKENS) : self.mask_id]
        config = {"symbols": symbols, "lowercase": self.lowercase}
        return config | ({"with_mask": True} if self.with_mask else {})
