"""Lowercasing inside the graph, with the same result on every machine."""

import functools
import sys

import tensorflow as tf

# Unicode's Final_Sigma: a capital sigma after a cased letter and before none is written ς.
# Both conditions look past marks and punctuation that belong to a word (Case_Ignorable).
_IGNORABLE = (
    r"\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:^`\x{B7}\x{387}\x{55F}\x{5F4}\x{2018}\x{2019}"
    r"\x{2024}\x{2027}\x{FE13}\x{FE52}\x{FE55}\x{FF07}\x{FF0E}\x{FF1A}"
)
_CASED = (
    r"\p{Lu}\p{Ll}\p{Lt}\x{AA}\x{BA}\x{2160}-\x{217F}\x{24B6}-\x{24E9}"
    r"\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}"
)
_FINAL_SIGMA = (
    rf"([{_CASED}][{_IGNORABLE}]*)\x{{3A3}}([{_IGNORABLE}]*(?:[^{_CASED}{_IGNORABLE}]|\z))"
)


class Lowercase(tf.Module):
    """Lower-cases strings as Python's `str.lower` does, by table.

    `tf.strings.lower` is not used: its result depends on the machine's locale (with a Turkish one
    "I" loses its dot) and on the Unicode version of TensorFlow's ICU, and it cuts at a NUL.

    Reference: The Unicode Standard, section 3.13, "Default Case Conversion".
    """

    def __init__(self) -> None:
        super().__init__(name="lowercase")
        moved = _moved()
        self._distance = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([code for code, _ in moved], tf.int32),
                tf.constant([lower - code for code, lower in moved], tf.int32),
            ),
            default_value=0,
        )

    def __call__(self, strings: tf.Tensor) -> tf.Tensor:
        """Lower-cases a batch.

        Args:
            strings: String tensor (batch,), UTF-8; malformed bytes become U+FFFD.

        Returns:
            String tensor (batch,).
        """
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        strings = tf.strings.unicode_encode(codes, "UTF-8")
        strings = tf.strings.regex_replace(strings, _FINAL_SIGMA, "\\1ς\\2")
        # The only capital whose lower case is two characters: i and a combining dot.
        strings = tf.strings.regex_replace(strings, "İ", "i\u0307")
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        codes = codes.with_values(codes.values + self._distance.lookup(codes.values))
        return tf.strings.unicode_encode(codes, "UTF-8")


@functools.cache
def _moved() -> list[tuple[int, int]]:
    """The characters whose lower case is one other character, and that."""
    return [
        (code, ord(lower))
        for code in range(sys.maxunicode + 1)
        if len(lower := chr(code).lower()) == 1 and ord(lower) != code
    ]
