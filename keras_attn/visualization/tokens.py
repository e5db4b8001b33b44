"""Tokens as they are read by people."""

import unicodedata
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from keras_attn.tokenizers import ByteLevelBpeTokenizer

_SHOWN = {" ": "␣", "\n": "⏎", "\t": "⇥", "": "∅"}
_UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Co", "Cn"}


def readable_tokens(tokenizer: Any, ids: Iterable[int]) -> list[str]:
    """Gives the pieces of a text, with signs for what cannot be seen.

    Args:
        tokenizer: The tokenizer.
        ids: The tokens.

    Returns:
        A text for each token: spaces are ␣, line feeds ⏎, characters without a form their numbers.
    """
    ids = [int(token_id) for token_id in ids]
    pieces = [tokenizer.id_to_token(token_id) for token_id in ids]
    if isinstance(tokenizer, ByteLevelBpeTokenizer) and ids:
        # Its vocabulary is written in characters that stand for bytes.
        special = {tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id}
        texts = tokenizer.detokenize(tf.constant(ids)[:, None]).numpy()
        pieces = [
            piece if token_id in special else text.decode(errors="replace")
            for token_id, piece, text in zip(ids, pieces, texts, strict=True)
        ]
    return [readable(piece) for piece in pieces]


def readable(text: str) -> str:
    """Gives a text with signs for what cannot be seen in it."""
    return "".join(map(_readable_character, text)) or _SHOWN[""]


def _readable_character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if unicodedata.category(character) in _UNSEEN:
        return f"U+{ord(character):04X}"
    return character
