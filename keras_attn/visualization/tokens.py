"""Tokens as they are read by people."""

import unicodedata

from keras_attn.tasks.token_view import EMPTY

_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥"}
_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Co", "Cn"}


def readable(text: str) -> str:
    """Gives a text with signs for what cannot be seen in it.

    Spaces are ␣, line feeds ⏎, characters without a form their numbers, and nothing is ∅.
    """
    return "".join(map(_readable_character, text)) or EMPTY


def _readable_character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if unicodedata.category(character) in _UNSEEN:
        return f"U+{ord(character):04X}"
    return character
