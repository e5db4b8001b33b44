"""Parts of texts on their way through a pipeline, and their splitting."""

from typing import NamedTuple

import tensorflow as tf


class Words(NamedTuple):
    """Parts of a batch of texts, in order.

    Attributes:
        strings: The parts, strings (parts,).
        rows: The text that each belongs to, int64 (parts,).
        at_start: Whether each begins where its text begins, bool (parts,).
    """

    strings: tf.Tensor
    rows: tf.Tensor
    at_start: tf.Tensor

    def where(self, condition: tf.Tensor) -> "Words":
        """Returns some of the parts."""
        return Words(*(tf.boolean_mask(values, condition) for values in self))

    def with_parts(self, strings: tf.RaggedTensor) -> "Words":
        """Returns the parts of each part, strings (parts, None)."""
        parents = strings.value_rowids()
        first = parents != tf.concat([[-1], parents], axis=0)[:-1]
        at_start = tf.gather(self.at_start, parents) & first
        return Words(strings.values, tf.gather(self.rows, parents), at_start)


def shifted(values: tf.Tensor, fill: int) -> tf.Tensor:
    """Moves values (length,) one place to the right."""
    return tf.concat([[tf.cast(fill, values.dtype)], values], axis=0)[:-1]
