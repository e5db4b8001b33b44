"""Readable forms of tokens."""

import unicodedata

from keras_attn.tasks.token_view import EMPTY

_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}
_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Co", "Cn"}


def readable(text: str) -> str:
    """Replaces invisible characters of a text by symbols.

    Spaces become ␣, line feeds ⏎, other invisible characters their numbers, and an empty text ∅.
    """
    return "".join(map(_readable_character, text)) or EMPTY


def _readable_character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if unicodedata.category(character) in _UNSEEN:
        return f"U+{ord(character):04X}"
    return character
