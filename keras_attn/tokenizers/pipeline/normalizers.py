"""Normalizers of a `tokenizer.json`."""

import base64
import binascii
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_attn.tokenizers.bert_words import bert_replacer
from keras_attn.tokenizers.code_points import (
    ITSELF,
    CodePointReplacer,
    code_points,
    later_code_points,
    lower_case,
)
from keras_attn.tokenizers.pipeline.charsmap import CompiledReplacer
from keras_attn.tokenizers.pipeline.options import made_of, read_options, read_pattern
from keras_attn.tokenizers.pipeline.patterns import spelled, written
from keras_attn.tokenizers.special_text import CUT
from keras_attn.validation import UserError, require

Normalizer = Callable[[tf.Tensor], tf.Tensor]
_ITSELF, _NOTHING, _SPACE = ((ITSELF,), (), (ord(" "),))
# Control characters that `Nmt` drops, and what it writes as a space.
_NMT_DROPPED = (*range(0x1, 0x9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F)
_NMT_SPACES = (
    *(0x9, 0xA, 0xC, 0xD, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029),
    *(0x2581, 0xFEFF, 0xFFFD),
)


def make_normalizer(part: Mapping[str, Any] | None) -> Normalizer:
    """Makes what normalizes strings (batch,).

    Args:
        part: The `normalizer` of a `tokenizer.json`.

    Raises:
        UserError: Something is not supported.
    """
    return tf.identity if part is None else made_of("normalizer", part, _MAKERS)


class InTurn(tf.Module):
    """Applies several functions in turn."""

    def __init__(self, steps: list[Callable]) -> None:
        super().__init__(name="in_turn")
        self._steps = tuple(steps)

    def __call__(self, values: Any) -> Any:
        """Returns what the last function makes of the others' results."""
        for step in self._steps:
            values = step(values)
        return values


def _sequence(part: Mapping[str, Any]) -> Normalizer:
    (parts,) = read_options(part, normalizers=[])
    return InTurn([make_normalizer(one) for one in parts])


def _bert(part: Mapping[str, Any]) -> Normalizer:
    clean, chinese, accents, lowercase = read_options(
        part,
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=None,
        lowercase=True,
    )
    strip = lowercase if accents is None else bool(accents)
    return bert_replacer(lowercase, strip, chinese, clean, split_punctuation=False)


def _lowercase(part: Mapping[str, Any]) -> Normalizer:
    read_options(part)
    rows: list[tuple[int, ...]] = [_ITSELF]
    row_of_code = np.zeros(sys.maxunicode + 1, np.int32)
    for code in range(sys.maxunicode + 1):
        if not 0xD800 <= code < 0xE000 and (low := lower_case(chr(code))) != chr(code):
            row_of_code[code] = len(rows)
            rows.append(tuple(map(ord, low)))
    return CodePointReplacer(rows, row_of_code)


def _strip_accents(part: Mapping[str, Any]) -> Normalizer:
    read_options(part)
    return CodePointReplacer([_ITSELF, _NOTHING], code_points("accents").astype(np.int32))


def _nmt(part: Mapping[str, Any]) -> Normalizer:
    read_options(part)
    row_of_code = np.zeros(sys.maxunicode + 1, np.int32)
    row_of_code[[*_NMT_DROPPED]] = 1
    row_of_code[[*_NMT_SPACES]] = 2
    return CodePointReplacer([_ITSELF, _NOTHING, _SPACE], row_of_code)


def _unicode(form: str, part: Mapping[str, Any]) -> Normalizer:
    """A normal form of Unicode; characters that are newer than the library's are kept."""
    read_options(part)
    later = spelled(later_code_points(form))

    def normalize(strings: tf.Tensor) -> tf.Tensor:
        marked = tf.strings.regex_replace(strings, f"({later})", CUT + rb"\1" + CUT)
        pieces = tf.strings.split(marked, CUT)
        is_later = tf.strings.regex_full_match(pieces.values, later)
        normal = tf_text.normalize_utf8(pieces.values, form)
        values = tf.where(is_later, pieces.values, normal)
        return tf.strings.reduce_join(pieces.with_values(values), axis=-1)

    return normalize


def _strip(part: Mapping[str, Any]) -> Normalizer:
    left, right = read_options(part, strip_left=True, strip_right=True)
    space = spelled(code_points("spaces"))
    ends = [rf"\A{space}+"] * left + [rf"{space}+\z"] * right
    return partial(_replaced, pattern="|".join(ends), content="") if ends else tf.identity


def _replace(part: Mapping[str, Any]) -> Normalizer:
    _, content = read_options(part, pattern=None, content="")
    pattern = written(read_pattern(part), spelled)
    require(isinstance(content, str), "`Replace.content` must be a text.", content=content)
    empty = bool(tf.strings.regex_full_match("", pattern))
    require(not empty, "A regular expression must not match an empty text.")
    return partial(_replaced, pattern=pattern, content=content.replace("\\", r"\\"))


def _replaced(strings: tf.Tensor, pattern: str, content: str) -> tf.Tensor:
    return tf.strings.regex_replace(strings, pattern, content)


def _prepend(part: Mapping[str, Any]) -> Normalizer:
    (text,) = read_options(part, prepend="")
    return partial(_replaced, pattern=r"(?s)\A(.)", content=text.replace("\\", r"\\") + r"\1")


def _precompiled(part: Mapping[str, Any]) -> Normalizer:
    (charsmap,) = read_options(part, precompiled_charsmap="")
    try:
        content = base64.b64decode(charsmap or "", validate=True)
    except (binascii.Error, TypeError):
        raise UserError("`Precompiled.precompiled_charsmap` must be base64.") from None
    return CompiledReplacer(content) if content else tf.identity


_MAKERS: dict[str, Callable[[Mapping[str, Any]], Normalizer]] = {
    "BertNormalizer": _bert,
    "Lowercase": _lowercase,
    "Nmt": _nmt,
    "Precompiled": _precompiled,
    "Prepend": _prepend,
    "Replace": _replace,
    "Sequence": _sequence,
    "Strip": _strip,
    "StripAccents": _strip_accents,
    **{form: partial(_unicode, form) for form in ("NFC", "NFD", "NFKC", "NFKD")},
}
