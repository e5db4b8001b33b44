"""Cleaning of text as in BERT, and splitting at spaces, punctuation and Chinese characters."""

import functools
import sys
import unicodedata

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.code_points import ITSELF, CodePointReplacer, code_points, lower_case

_SPACE = ord(" ")
_LAST_MAPPED = 0x2FA1D  # above there is neither a decomposition nor a lower case


class BertWords(tf.Module):
    """Cleans and splits texts as BERT's tokenizer of the `tokenizers` library does.

    Each code point is replaced independently of its neighbors. A table contains the replacements,
    with spaces around code points that are words of their own.

    Args:
        lowercase: Whether words are lower-cased.
        strip_accents: Whether accents are removed, by decomposition and dropping of marks.
        split_chinese: Whether each Chinese character is a word.

    Reference: Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, and the file
    `tokenization.py` published with it.
    """

    def __init__(self, lowercase: bool, strip_accents: bool, split_chinese: bool) -> None:
        super().__init__(name="bert_words")
        self._replacer = bert_replacer(lowercase, strip_accents, split_chinese)

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits a batch.

        Args:
            strings: String tensor (batch,), UTF-8; malformed bytes are read as U+FFFD, which is
                dropped.

        Returns:
            RaggedTensor of strings (batch, None), the words.
        """
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        return self._split(codes.with_values(self._replacer.replaced(codes.values)))

    def with_places(
        self, strings: tf.Tensor, places: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Splits a batch, and finds the places of the words' code points.

        Args:
            strings: String tensor (batch,), UTF-8.
            places: The place of each of their code points, (code points,).

        Returns:
            The words, and the place of each of their code points, one word after the other.
        """
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        replaced = self._replacer.replaced(codes.values)  # (code points, None)
        places = tf.repeat(places, replaced.row_lengths())
        in_words = (replaced.values != _SPACE) & ((replaced.values < 9) | (replaced.values > 13))
        words = self._split(codes.with_values(replaced))
        return words, tf.boolean_mask(places, in_words)

    def _split(self, codes: tf.RaggedTensor) -> tf.RaggedTensor:
        texts = codes.merge_dims(1, 2)
        return tf.strings.split(tf.strings.unicode_encode(texts, "UTF-8"))


def bert_replacer(
    lowercase: bool,
    strip_accents: bool,
    split_chinese: bool,
    clean: bool = True,
    split_punctuation: bool = True,
) -> CodePointReplacer:
    """Makes the replacer of BERT's code points.

    Args:
        lowercase: See `BertWords`.
        strip_accents: See `BertWords`.
        split_chinese: See `BertWords`.
        clean: Whether control characters are dropped, and spaces of all kinds become spaces.
        split_punctuation: Whether there are spaces around punctuation.
    """
    rows = _replacements(lowercase, strip_accents, split_chinese, clean, split_punctuation)
    return CodePointReplacer(*rows)


@functools.cache
def _replacements(
    lowercase: bool, strip_accents: bool, split_chinese: bool, clean: bool, split_punctuation: bool
) -> tuple[tuple[tuple[int, ...], ...], np.ndarray]:
    """The distinct replacements, and which of them each code point has, (1114112,) int32."""
    dropped, is_space = code_points("dropped") & clean, code_points("spaces") & clean
    marks, punctuation = code_points("marks"), code_points("punctuation") & split_punctuation
    whole = code_points("undecomposed")
    is_chinese = code_points("chinese") & split_chinese
    rows: dict[tuple[int, ...], int] = {
        (ITSELF,): 0,
        (): 1,
        (_SPACE,): 2,
        (_SPACE, ITSELF, _SPACE): 3,
    }
    row_of_code = np.zeros(sys.maxunicode + 1, np.int32)
    row_of_code[is_chinese | punctuation] = 3
    row_of_code[is_space] = 2
    row_of_code[dropped | (marks & strip_accents)] = 1
    for code in np.flatnonzero(~(dropped | is_space)[: _LAST_MAPPED + 1]).tolist():
        if 0xD800 <= code < 0xE000:
            continue
        character = text = chr(code)
        if strip_accents and not whole[code]:
            text = unicodedata.normalize("NFD", text)
        if strip_accents and (len(text) > 1 or marks[code]):
            text = "".join(part for part in text if not marks[ord(part)])
        if lowercase:
            text = "".join(map(lower_case, text))
        if text != character:
            row = tuple(code for part in text for code in _spaced(ord(part), punctuation))
            row = (_SPACE, *row, _SPACE) if is_chinese[code] else row
            row_of_code[code] = rows.setdefault(row, len(rows))
    row_of_code.setflags(write=False)
    return tuple(rows), row_of_code


def _spaced(code: int, punctuation: np.ndarray) -> list[int]:
    return [_SPACE, code, _SPACE] if punctuation[code] else [code]
