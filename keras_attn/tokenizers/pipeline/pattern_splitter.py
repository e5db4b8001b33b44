"""Splitting of texts at the matches of a regular expression."""

import string

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.code_points import CodePointTable
from keras_attn.tokenizers.pipeline.patterns import (
    ALL,
    Characters,
    InOrder,
    NotBefore,
    OneOf,
    Pattern,
    Repeated,
    sets_of,
    written,
)
from keras_attn.tokenizers.pipeline.words import Words, shifted
from keras_attn.validation import UserError, require, require_one_of

_OPEN, _CLOSE, _LAST_SPACE = "<>~"
_LETTERS = string.ascii_letters + string.digits
# Marks around a match, by the behavior.
_MARKED = {
    "isolated": rf"{_OPEN}\0{_CLOSE}",
    "removed": rf"{_OPEN}\0{_CLOSE}",
    "contiguous": rf"{_OPEN}\0{_CLOSE}",
    "merged_with_previous": rf"\0{_CLOSE}",
    "merged_with_next": rf"{_OPEN}\0",
}


class PatternSplitter(tf.Module):
    r"""Splits texts as the pre-tokenizer `Split` of the `tokenizers` library does.

    Characters that a pattern does not distinguish are one letter, and TensorFlow's regular
    expressions match the letters. So patterns mean the same with every version of Unicode, and a
    place can be marked by something that is not in a text: before the last of several spaces, where
    `\s+(?!\S)`, for which these expressions have nothing, ends.

    Args:
        pattern: The pattern.
        behavior: "isolated", "removed", "contiguous", "merged_with_previous" or
            "merged_with_next".
        invert: Whether what is between the matches is removed; only with "removed".

    Raises:
        UserError: The pattern or the combination is not supported.
    """

    def __init__(self, pattern: Pattern, behavior: str, invert: bool = False) -> None:
        super().__init__(name="pattern_splitter")
        require_one_of("behavior", behavior, _MARKED)
        require(
            not invert or behavior in ("isolated", "removed"),
            "`invert` is only supported with the behavior Isolated or Removed.",
            behavior=behavior,
        )
        # What matches and what does not are isolated either way.
        self._behavior, self._invert = behavior, invert
        head, spaces = _without_lookahead(pattern)
        letters, distinct = _letters(sets_of(pattern))
        self._letter_of_code = CodePointTable(letters)
        self._spaces = None if spaces is None else _spelled(spaces, letters, distinct)
        expression = written(head, lambda inside: self._spelled(inside, letters, distinct))
        if self._spaces is not None:
            expression = f"(?:{expression}|{_LAST_SPACE}?[{self._spaces}]+)"
        self._expression = expression
        try:
            empty = tf.strings.regex_full_match("", expression)
        except tf.errors.InvalidArgumentError:
            raise UserError("The regular expression is too large.") from None
        require(not bool(empty), "A regular expression must not match an empty text.")

    def _spelled(self, inside: np.ndarray, letters: np.ndarray, distinct: np.ndarray) -> str:
        """A set, whose characters may have the mark of the last space before them."""
        found = f"[{_spelled(inside, letters, distinct)}]"
        if self._spaces is not None and set(self._spaces) & set(found):
            return f"(?:{_LAST_SPACE}?{found})"
        return found

    def __call__(self, words: Words) -> Words:
        """Returns the parts of each part that are not empty."""
        codes = tf.strings.unicode_decode(words.strings, "UTF-8", errors="replace")
        letters = codes.with_values(self._letter_of_code.lookup(codes.values))
        marked = tf.strings.unicode_encode(letters, "UTF-8")
        if self._spaces is not None:
            last = rf"([{self._spaces}])([{self._spaces}][^{self._spaces}])"
            marked = tf.strings.regex_replace(marked, last, rf"\1{_LAST_SPACE}\2")
        marked = tf.strings.regex_replace(marked, self._expression, _MARKED[self._behavior])
        if self._behavior == "contiguous":
            marked = tf.strings.regex_replace(marked, _CLOSE + _OPEN, "")
        edges, inside = _edges(tf.strings.unicode_decode(marked, "UTF-8").values)
        row = codes.value_rowids()
        first = row != shifted(row, -1)
        begins = first | (edges != shifted(edges, -1))
        starts = tf.where(begins)[:, 0]
        parts = tf.RaggedTensor.from_row_starts(codes.values, starts, validate=False)
        parents = tf.gather(row, starts)
        parts = Words(
            tf.strings.unicode_encode(parts, "UTF-8"),
            tf.gather(words.rows, parents),
            tf.gather(words.at_start, parents) & tf.gather(first, starts),
        )
        if self._behavior != "removed":
            return parts
        return parts.where(tf.gather(inside, starts) == self._invert)


def _edges(marked: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """For each character the number of marks before it, and whether it is in a match."""
    opens, closes = marked == ord(_OPEN), marked == ord(_CLOSE)
    is_character = ~(opens | closes | (marked == ord(_LAST_SPACE)))
    opens, closes = tf.cast(opens, tf.int32), tf.cast(closes, tf.int32)
    edges = tf.boolean_mask(tf.cumsum(opens + closes), is_character)
    return edges, tf.boolean_mask(tf.cumsum(opens - closes), is_character) > 0


def _without_lookahead(pattern: Pattern) -> tuple[Pattern, np.ndarray | None]:
    r"""The pattern without the end `\s+(?!\S)|\s+`, and the spaces if it had that."""
    options = pattern.options if isinstance(pattern, OneOf) else (pattern,)
    spaces = [_before_space(option) for option in options]
    found = [(place, inside) for place, inside in enumerate(spaces) if inside is not None]
    if not found:
        return pattern, None
    place, inside = found[0]
    known = 0 < place == len(options) - 2 and _is_repeated(options[-1], inside)
    require(known, r"`\s+(?!\S)` is only supported before a last alternative `\s+`.")
    return OneOf(tuple(options[:place])), inside


def _before_space(option: Pattern) -> np.ndarray | None:
    r"""The spaces of an alternative `\s+(?!\S)`, None for another one."""
    if isinstance(option, InOrder) and len(option.parts) == 2:
        first, second = option.parts
        if isinstance(second, NotBefore) and _is_repeated(first, ~second.inside):
            return ~second.inside
    return None


def _is_repeated(pattern: Pattern, inside: np.ndarray) -> bool:
    return (
        isinstance(pattern, Repeated)
        and (pattern.least, pattern.most, pattern.lazy) == (1, None, False)
        and isinstance(pattern.part, Characters)
        and bool((pattern.part.inside == inside).all())
    )


def _letters(sets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The letter of each code point, (1114112,) int32, and a code point of each letter."""
    distinct = list({inside.tobytes(): inside for inside in sets}.values())
    number = np.zeros(ALL, np.int64)
    for first in range(0, len(distinct), 40):  # so many bits beside those of a number
        for inside in distinct[first : first + 40]:
            number = 2 * number + inside
        number = np.unique(number, return_inverse=True)[1]
    count = number.max() + 1
    names = [*map(ord, _LETTERS), *range(0x100, 0x100 + count)]
    letters = np.array(names[:count], np.int32)[number]
    return letters, np.unique(number, return_index=True)[1]


def _spelled(inside: np.ndarray, letters: np.ndarray, distinct: np.ndarray) -> str:
    """The letters of a set of characters."""
    found = "".join(chr(letter) for letter in letters[distinct[inside[distinct]]])
    return found or "!"  # no character has it
