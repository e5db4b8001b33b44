"""Properties of all code points, looked up inside the graph."""

import sys
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.documents import parse_json

_PAGE = 256
ITSELF = -1
"""In a replacement: the code point that is replaced."""


class CodePointTable(tf.Module):
    """A small integer for each code point, stored in pages; equal pages are stored once.

    Args:
        values: The integer of each code point, (1114112,) int32.
    """

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(name="code_points")
        pages, page_of = np.unique(values.reshape(-1, _PAGE), axis=0, return_inverse=True)
        self._pages = tf.constant(pages.reshape(-1), tf.int32)
        self._page_of = tf.constant(page_of.reshape(-1), tf.int32)

    def lookup(self, codes: tf.Tensor) -> tf.Tensor:
        """Returns the integers of code points, int32 of the shape of `codes`."""
        page = tf.gather(self._page_of, codes // _PAGE)
        return tf.gather(self._pages, page * _PAGE + codes % _PAGE)


class CodePointReplacer(tf.Module):
    """Replaces each code point of a text, independently of its neighbors.

    Args:
        rows: Replacements, code points and `ITSELF`.
        row_of_code: The replacement of each code point, (1114112,) int32.
    """

    def __init__(self, rows: Sequence[Sequence[int]], row_of_code: np.ndarray) -> None:
        super().__init__(name="code_point_replacer")
        self._row_of_code = CodePointTable(row_of_code)
        self._values = tf.constant([code for row in rows for code in row], tf.int32)
        self._splits = tf.constant(np.cumsum([0, *map(len, rows)]), tf.int64)

    def __call__(self, strings: tf.Tensor) -> tf.Tensor:
        """Returns the replaced strings (batch,); malformed bytes are read as U+FFFD."""
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        return tf.strings.unicode_encode(self.replace(codes), "UTF-8")

    def replace(self, codes: tf.RaggedTensor, rows: tf.Tensor | None = None) -> tf.RaggedTensor:
        """Replaces code points (batch, None).

        Args:
            codes: The code points.
            rows: The replacement of each, where it is not that of the table: (code points,).
        """
        return codes.with_values(self.replaced(codes.values, rows)).merge_dims(1, 2)

    def replaced(self, codes: tf.Tensor, rows: tf.Tensor | None = None) -> tf.RaggedTensor:
        """Returns what replaces each code point, (code points, None); see `replace`."""
        rows = self._row_of_code.lookup(codes) if rows is None else rows
        table = tf.RaggedTensor.from_row_splits(self._values, self._splits, validate=False)
        replaced = tf.gather(table, rows)
        itself = tf.repeat(codes, replaced.row_lengths())
        return replaced.with_values(tf.where(replaced.values == ITSELF, itself, replaced.values))


def code_points(name: str) -> np.ndarray:
    """Returns which code points have a property, (1114112,) bool.

    The properties are those of the `tokenizers` library (unicode_ranges.json), which follow
    several versions of Unicode, so that ids are the same on every machine.

    Args:
        name: A key of the file, such as "letters", "spaces" or "punctuation".
    """
    return _inside(_unicode_ranges()[name])


def later_code_points(form: str) -> np.ndarray:
    """Returns where TensorFlow's normal form differs, because its Unicode is a later one.

    Args:
        form: "NFC", "NFD", "NFKC" or "NFKD".
    """
    return _inside(_unicode_ranges()["later"][form])


def has_code_points(name: str) -> bool:
    """Returns whether a property is in the file."""
    return isinstance(_unicode_ranges().get(name), str)


def _inside(ranges: str) -> np.ndarray:
    inside = np.zeros(sys.maxunicode + 1, bool)
    for part in ranges.split():
        first, _, last = part.partition("-")
        inside[int(first, 16) : int(last or first, 16) + 1] = True
    return inside


def lower_case(character: str) -> str:
    """Returns the lower case of one character, of Unicode 17 on every Python."""
    later = _unicode_ranges()["lower"].get(f"{ord(character):X}")
    return chr(int(later, 16)) if later else character.lower()


@cache
def _unicode_ranges() -> dict[str, Any]:
    file = resources.files("keras_attn.tokenizers") / "unicode_ranges.json"
    return parse_json(file.read_text(encoding="utf-8"), file.name)
