"""Properties of all code points, looked up inside the graph."""

import sys
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.documents import parse_json

_PAGE = 256


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


def code_points(name: str) -> np.ndarray:
    """Returns which code points have a property, (1114112,) bool.

    The properties are those of the `tokenizers` library (unicode_ranges.json), which follow
    several versions of Unicode, so that ids are the same on every machine.

    Args:
        name: "letters", "numbers", "spaces", "punctuation", "dropped", "marks", "chinese" or
            "undecomposed".
    """
    inside = np.zeros(sys.maxunicode + 1, bool)
    for part in _unicode_ranges()[name].split():
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
