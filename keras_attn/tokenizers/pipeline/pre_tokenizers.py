"""Pre-tokenizers of a `tokenizer.json`: the splitting of texts into words."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_attn.tokenizers.byte_words import ByteCharacters
from keras_attn.tokenizers.code_points import code_points
from keras_attn.tokenizers.pipeline.normalizers import InTurn
from keras_attn.tokenizers.pipeline.options import (
    made_of,
    read_options,
    read_pattern,
    require_option,
)
from keras_attn.tokenizers.pipeline.pattern_splitter import PatternSplitter
from keras_attn.tokenizers.pipeline.patterns import Characters, literal, parse_pattern
from keras_attn.tokenizers.pipeline.words import Words
from keras_attn.validation import require

PreTokenizer = Callable[[Words], Words]
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_BEHAVIORS = {
    "Isolated": "isolated",
    "Removed": "removed",
    "Contiguous": "contiguous",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
}
_SCHEMES = ("always", "first", "never")


def make_pre_tokenizer(part: Mapping[str, Any] | None) -> PreTokenizer:
    """Makes what splits words.

    Args:
        part: The `pre_tokenizer` of a `tokenizer.json`.

    Raises:
        UserError: Something is not supported.
    """
    return (lambda words: words) if part is None else made_of("pre_tokenizer", part, _MAKERS)


class Metaspace(tf.Module):
    """Writes spaces as a visible character, which then begins words.

    Args:
        replacement: The character.
        scheme: Where it is added before a text that does not begin with it: "always", "first"
            (where the whole text begins) or "never".
        split: Whether words are split before it.
    """

    def __init__(self, replacement: str, scheme: str, split: bool) -> None:
        super().__init__(name="metaspace")
        self._replacement, self._scheme = replacement, scheme
        self._splitter = PatternSplitter(literal(replacement), "merged_with_next")
        self._split = split

    def __call__(self, words: Words) -> Words:
        """Returns the words, split further."""
        strings = tf.strings.regex_replace(words.strings, " ", self._replacement)
        if self._scheme != "never":
            may = words.at_start | (self._scheme == "always")
            strings = _with_prefix(strings, self._replacement, may)
        words = words._replace(strings=strings)
        return self._splitter(words) if self._split else words


class ByteLevel(tf.Module):
    """Writes each byte as a character, after a splitting into GPT-2's words.

    Args:
        add_prefix_space: Whether texts begin with a space.
        split: Whether words are split.
    """

    def __init__(self, add_prefix_space: bool, split: bool) -> None:
        super().__init__(name="byte_level")
        self._add_prefix_space = add_prefix_space
        self._splitter = PatternSplitter(parse_pattern(GPT2_PATTERN), "isolated") if split else None
        self._characters = ByteCharacters()

    def __call__(self, words: Words) -> Words:
        """Returns the words, split further."""
        if self._add_prefix_space:
            strings = _with_prefix(words.strings, " ", tf.ones_like(words.at_start))
            words = words._replace(strings=strings)
        if self._splitter is not None:
            words = self._splitter(words)
        return words._replace(strings=self._characters(words.strings))


def _with_prefix(strings: tf.Tensor, prefix: str, may: tf.Tensor) -> tf.Tensor:
    """Adds a character before strings that are not empty and begin otherwise."""
    size = len(prefix.encode())
    lacks = (tf.strings.length(strings) > 0) & (tf.strings.substr(strings, 0, size) != prefix)
    return tf.where(lacks & may, tf.strings.join([prefix, strings]), strings)


def _sequence(part: Mapping[str, Any]) -> PreTokenizer:
    (parts,) = read_options(part, pretokenizers=[])
    return InTurn([make_pre_tokenizer(one) for one in parts])


def _split(part: Mapping[str, Any]) -> PreTokenizer:
    _, behavior, invert = read_options(part, pattern=None, behavior="Isolated", invert=False)
    require_option(part, behavior=tuple(_BEHAVIORS))
    return PatternSplitter(read_pattern(part), _BEHAVIORS[behavior], invert)


def _byte_level(part: Mapping[str, Any]) -> PreTokenizer:
    prefix, _, split = read_options(part, add_prefix_space=True, trim_offsets=True, use_regex=True)
    return ByteLevel(prefix, split)


def _metaspace(part: Mapping[str, Any]) -> PreTokenizer:
    # Older files have `add_prefix_space` in place of the scheme, and the replacement twice.
    replacement, _, prefix, scheme, split = read_options(
        part,
        replacement="▁",
        str_rep=None,
        add_prefix_space=True,
        prepend_scheme=None,
        split=True,
    )
    require_option(part, prepend_scheme=(None, *_SCHEMES))
    one = isinstance(replacement, str) and len(replacement) == 1
    require(one, "`Metaspace.replacement` must be one character.", replacement=replacement)
    return Metaspace(replacement, scheme or ("always" if prefix else "never"), split)


def _bert(part: Mapping[str, Any]) -> PreTokenizer:
    read_options(part)
    spaces, punctuation = code_points("spaces"), code_points("punctuation")
    return InTurn(
        [
            PatternSplitter(Characters(spaces), "removed"),
            PatternSplitter(Characters(punctuation), "isolated"),
        ]
    )


def _spaces(part: Mapping[str, Any]) -> PreTokenizer:
    read_options(part)
    return PatternSplitter(Characters(code_points("spaces")), "removed")


def _whitespace(part: Mapping[str, Any]) -> PreTokenizer:
    read_options(part)
    # Not the regular expressions of `Split`, whose \w follows another version of Unicode.
    word, space = Characters(code_points("words")), Characters(code_points("spaces"))
    words = PatternSplitter(word, "contiguous")
    return InTurn([PatternSplitter(space, "removed"), words])


def _punctuation(part: Mapping[str, Any]) -> PreTokenizer:
    (behavior,) = read_options(part, behavior="Isolated")
    require_option(part, behavior=tuple(_BEHAVIORS))
    return PatternSplitter(Characters(code_points("punctuation")), _BEHAVIORS[behavior])


def _digits(part: Mapping[str, Any]) -> PreTokenizer:
    (individual,) = read_options(part, individual_digits=False)
    behavior = "isolated" if individual else "contiguous"
    return PatternSplitter(Characters(code_points("digits")), behavior)


def _delimiter(part: Mapping[str, Any]) -> PreTokenizer:
    (delimiter,) = read_options(part, delimiter="")
    one = isinstance(delimiter, str) and len(delimiter) == 1
    require(one, "`CharDelimiterSplit.delimiter` must be one character.", delimiter=delimiter)
    return PatternSplitter(literal(delimiter), "removed")


_MAKERS: dict[str, Callable[[Mapping[str, Any]], PreTokenizer]] = {
    "BertPreTokenizer": _bert,
    "ByteLevel": _byte_level,
    "CharDelimiterSplit": _delimiter,
    "Digits": _digits,
    "Metaspace": _metaspace,
    "Punctuation": _punctuation,
    "Sequence": _sequence,
    "Split": _split,
    "Whitespace": _whitespace,
    "WhitespaceSplit": _spaces,
}
