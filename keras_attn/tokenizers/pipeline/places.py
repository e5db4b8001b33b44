"""Places of tokens in a text before it was normalized."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from keras_attn.tokenizers.code_points import code_points
from keras_attn.tokenizers.pipeline.patterns import spelled

# Longer runs of characters without a space are normalized in parts.
_LONGEST_RUN = 64


class PlaceFinder(tf.Module):
    """Finds where tokens are in texts, by what they and the texts spell without spaces.

    A text is normalized up to each of its characters, within a run of characters between spaces:
    what is longer by one unit then is spelled by this character.

    Args:
        normalize: Normalizes strings.
        in_bytes: Whether units are bytes, otherwise characters.
        spaces: The characters that are no unit, of ASCII where units are bytes.
    """

    def __init__(self, normalize: Callable, in_bytes: bool, spaces: str) -> None:
        super().__init__(name="place_finder")
        self._normalize = normalize
        self._spaces = frozenset(spaces)
        self._unit = "BYTE" if in_bytes else "UTF8_CHAR"

    def units(self, strings: tf.Tensor) -> tf.Tensor:
        """The number of units of each string, without spaces."""
        spaces = "".join(rf"\x{{{ord(one):x}}}" for one in sorted(self._spaces))
        plain = tf.strings.regex_replace(strings, f"[{spaces}]", "")
        return tf.strings.length(plain, unit=self._unit)

    def units_of(self, tokens: Sequence[bytes]) -> list[int]:
        """The number of units of each token, in which a byte within a character is none."""

        def count(token: bytes) -> int:
            text = token.decode("latin-1" if self._unit == "BYTE" else "utf-8", "ignore")
            if text or not token:
                return sum(character not in self._spaces for character in text)
            return int(not 0x80 <= token[0] < 0xC0)

        return [count(token) for token in tokens]

    def __call__(
        self, strings: tf.Tensor, places: tf.Tensor, lengths: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the places of tokens.

        Args:
            strings: The texts, strings (batch,).
            places: The place of each of their characters, int32 (characters,).
            lengths: The number of units of each of their tokens, int32 (batch, None).

        Returns:
            Where each token begins and ends, int32 (tokens,). A token without a unit is at the
            place of the next one.
        """
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        rows = codes.value_rowids()
        begins, is_space = self._runs(codes)
        index = tf.range(tf.size(rows), dtype=tf.int32)
        spans = tf.ragged.range(begins, index + 1)
        prefixes = tf.strings.unicode_encode(
            spans.with_values(tf.gather(codes.values, spans.values)), "UTF-8"
        )
        # A space at the end of a text may be stripped.
        prefixes = tf.where(is_space, tf.strings.join(["a", prefixes, "a"]), prefixes)
        totals = self.units(self._normalize(prefixes)) - 2 * tf.cast(is_space, tf.int32)
        before = tf.where(begins == index, 0, tf.concat([[0], totals], axis=0)[:-1])
        added = tf.maximum(totals - before, 0)
        # What adds nothing, as an accent, belongs to the character before it.
        group = tf.cumsum(tf.cast((added > 0) | (begins == index), tf.int32)) - 1
        ends = tf.gather(tf.math.segment_max(places, group) + 1, group)
        in_row = tf.math.unsorted_segment_sum(added, rows, codes.nrows())
        return self._at(tf.repeat(places, added), tf.repeat(ends, added), in_row, lengths)

    def _runs(self, codes: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Where the run of each character begins, that of a space alone, and what is a space."""
        characters = tf.strings.unicode_encode(codes.values[:, None], "UTF-8")
        is_space = tf.strings.regex_full_match(characters, spelled(code_points("spaces")))
        index = tf.range(tf.size(is_space), dtype=tf.int32)
        rows = codes.value_rowids()
        is_first = tf.concat([[True], (rows[1:] != rows[:-1]) | is_space[:-1]], axis=0)
        is_first = is_first[: tf.size(index)] | is_space
        run = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        begin = tf.gather(tf.boolean_mask(index, is_first), run)
        return begin + (index - begin) // _LONGEST_RUN * _LONGEST_RUN, is_space

    def _at(
        self, starts: tf.Tensor, stops: tf.Tensor, in_row: tf.Tensor, lengths: tf.RaggedTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The places of tokens by those of the units, `in_row` of each text."""
        rows, sizes = lengths.value_rowids(), lengths.values
        ends = tf.cumsum(sizes)
        ends -= tf.gather(tf.concat([[0], ends], axis=0), tf.gather(lengths.row_starts(), rows))
        first = tf.gather(tf.cumsum(in_row, exclusive=True), rows)
        last = first + tf.maximum(tf.gather(in_row, rows) - 1, 0)
        starts, stops = (tf.concat([x, [0]], axis=0) for x in (starts, stops))
        begin = tf.gather(starts, tf.minimum(first + ends - sizes, last))
        end = tf.gather(stops, tf.minimum(first + tf.maximum(ends - 1, 0), last))
        return begin, tf.where(sizes > 0, end, begin)
