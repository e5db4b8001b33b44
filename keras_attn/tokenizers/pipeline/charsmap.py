"""Replacements that SentencePiece compiled, applied as the `tokenizers` library does."""

import struct
import sys

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.code_points import ITSELF, CodePointReplacer, CodePointTable, code_points
from keras_attn.validation import UserError, require

_LONGEST = 5  # bytes of a grapheme that is replaced as a whole
_PLACES = 3  # as many characters can have so many bytes, if the first is no mark
_CODE_BITS = 21
_NONE = 2**_CODE_BITS - 1  # after the end of a grapheme
_OTHER, _JOINED, _CONTROL, _PREFIX = range(4)
_DAMAGED = "`precompiled_charsmap` must be a table of SentencePiece."


class CompiledReplacer(tf.Module):
    """Replaces characters and short graphemes by a table.

    A grapheme (a character with its marks) of at most five bytes is replaced as a whole if the
    table has its beginning; SentencePiece itself replaces the beginning and keeps the rest. Other
    graphemes are replaced character by character.

    Args:
        charsmap: The table, a `precompiled_charsmap`.

    Raises:
        UserError: It is damaged.
    """

    def __init__(self, charsmap: bytes) -> None:
        super().__init__(name="compiled_replacer")
        rules = read_charsmap(charsmap)
        rows = [(ITSELF,), (), *{tuple(map(ord, text)): None for text in rules.values()}]
        number = {row: place for place, row in reversed([*enumerate(rows)])}
        row_of = {key: number[tuple(map(ord, text))] for key, text in rules.items()}
        row_of_code = np.zeros(sys.maxunicode + 1, np.int32)
        for key, row in row_of.items():
            if len(key) == 1:
                row_of_code[ord(key)] = row
        self._replacer = CodePointReplacer(rows, row_of_code)
        self._row_of_code = CodePointTable(row_of_code)
        kinds = np.full(sys.maxunicode + 1, _OTHER, np.int32)
        for kind, name in ((_JOINED, "joined"), (_CONTROL, "controls"), (_PREFIX, "prefixes")):
            kinds[code_points(name)] = kind
        kinds[0] = _CONTROL
        self._kind = CodePointTable(kinds)
        longer = {
            key: row
            for key, row in row_of.items()
            if 1 < len(key) <= _PLACES and len(key.encode()) <= _LONGEST
        }
        # Where a key begins with another, the shorter one counts.
        self._row_of_key = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([_packed(key) for key in longer] or [-1], tf.int64),
                tf.constant([*longer.values()] or [0], tf.int32),
            ),
            default_value=0,
        )

    def __call__(self, strings: tf.Tensor) -> tf.Tensor:
        """Returns the replaced strings (batch,)."""
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        rows = self._rows(codes.values, codes.value_rowids())
        return tf.strings.unicode_encode(self._replacer.replace(codes, rows), "UTF-8")

    def _rows(self, codes: tf.Tensor, texts: tf.Tensor) -> tf.Tensor:
        """The replacement of each code point, given the text that it belongs to."""
        single = self._row_of_code.lookup(codes)
        begins = self._begins(codes, texts)
        grapheme = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        count = tf.reduce_sum(tf.cast(begins, tf.int32))
        longer = [tf.cast(codes >= first, tf.int32) for first in (0x80, 0x800, 0x10000)]
        sizes = tf.math.unsorted_segment_sum(1 + tf.add_n(longer), grapheme, count)
        short = tf.gather(sizes, grapheme) <= _LONGEST

        # The first three characters of the grapheme that begins at each place.
        following = [codes, *(_ahead(codes, grapheme, places) for places in range(1, _PLACES))]
        key = tf.cast(following[0], tf.int64)
        whole = single
        for code in following[1:]:
            key = key * 2**_CODE_BITS + tf.cast(code, tf.int64)
            whole = tf.where(whole == 0, self._row_of_key.lookup(key), whole)
        starts = tf.boolean_mask(whole, begins)
        replaced = tf.gather(starts, grapheme)  # of the grapheme, 0 for none
        dropped = tf.where(begins, replaced, 1)
        return tf.where(short & (replaced > 0), dropped, single)

    def _begins(self, codes: tf.Tensor, texts: tf.Tensor) -> tf.Tensor:
        """Whether a grapheme begins at each code point, but for emoji, flags and syllables."""
        kind = self._kind.lookup(codes)
        before = tf.concat([[_CONTROL], kind], axis=0)[:-1]
        code_before = tf.concat([[0], codes], axis=0)[:-1]
        first = texts != tf.concat([[-1], texts], axis=0)[:-1]
        joined = (kind == _JOINED) & (before != _CONTROL)
        joined |= (before == _PREFIX) & (kind != _CONTROL)
        joined |= (code_before == ord("\r")) & (codes == ord("\n"))
        return first | ~joined


def read_charsmap(charsmap: bytes) -> dict[str, str]:
    """Reads the replacements of at most five bytes from a `precompiled_charsmap`.

    Args:
        charsmap: The table: a trie, and the texts that it points to.

    Raises:
        UserError: It is damaged.
    """
    require(len(charsmap) >= 4, _DAMAGED, bytes=len(charsmap))
    (size,) = struct.unpack_from("<I", charsmap)
    whole = size > 0 and size % 4 == 0 and 4 + size <= len(charsmap)
    require(whole, _DAMAGED, bytes=len(charsmap))
    texts = charsmap[4 + size :]
    try:
        return {
            key.decode(): texts[value : texts.index(0, value)].decode()
            for key, value in _trie_items(np.frombuffer(charsmap, "<u4", size // 4, 4))
        }
    except (ValueError, IndexError):
        raise UserError(f"{_DAMAGED} Received: {len(charsmap)} damaged bytes.") from None


def _trie_items(units: np.ndarray) -> list[tuple[bytes, int]]:
    """The short keys and their values in a double array, as of the library Darts-clone."""
    letters = np.arange(1, 256, dtype=np.int64)
    found: list[tuple[bytes, int]] = []
    places, keys = _children(units, np.zeros(1, np.int64)), np.zeros((1, 0), np.uint8)
    for _ in range(_LONGEST):
        # Units that are children of each place: their label is the letter that leads to them.
        nodes = places[:, None] ^ letters
        inside = nodes < len(units)
        labels = units[np.where(inside, nodes, 0)] & np.uint32(0x800000FF)
        parents, which = np.nonzero(inside & (labels == letters))
        keys = np.concatenate([keys[parents], letters[which, None].astype(np.uint8)], axis=1)
        nodes = nodes[parents, which]
        places = _children(units, nodes)
        ends = np.flatnonzero(units[nodes] >> np.uint32(8) & np.uint32(1))
        values = units[places[ends]] & np.uint32(0x7FFFFFFF)
        found += zip(map(bytes, keys[ends]), values.tolist(), strict=True)
    return found


def _children(units: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where the children of some nodes are."""
    found = units[nodes].astype(np.int64)
    return nodes ^ ((found >> 10) << ((found & 0x200) >> 6))


def _packed(key: str) -> int:
    codes = [*map(ord, key)]
    packed = 0
    for code in codes:
        packed = packed * 2**_CODE_BITS + code
    return packed


def _ahead(codes: tf.Tensor, grapheme: tf.Tensor, places: int) -> tf.Tensor:
    """The code point so many places further in the same grapheme."""
    filling = tf.fill([places], -1)
    codes = tf.concat([codes, filling], axis=0)[places:]
    there = tf.concat([grapheme, filling], axis=0)[places:]
    return tf.where(there == grapheme, codes, _NONE)
