"""A tree of tokens by their characters, which is searched inside the graph."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

_CODE_BITS = 21
_NONE = -1


class Trie(tf.Module):
    """Finds all tokens at all places of texts.

    Args:
        tokens: The tokens, none twice and none empty.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(name="trie")
        lengths = np.array([len(token) for token in tokens])
        codes = np.frombuffer("".join(tokens).encode("utf-32-le", "surrogatepass"), "<u4")
        starts = np.cumsum(lengths) - lengths
        self._longest = int(lengths.max())
        node = np.zeros(len(tokens), np.int64)  # 0 is the root
        keys, count = [], 1
        for place in range(self._longest):
            longer = np.flatnonzero(lengths > place)
            key = node[longer] << _CODE_BITS | codes[starts[longer] + place]
            distinct, which = np.unique(key, return_inverse=True)
            node[longer] = count + which
            keys.append(distinct)
            count += len(distinct)
        edges = np.concatenate(keys)
        self._next = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(edges, tf.int64), tf.range(1, count, dtype=tf.int32)
            ),
            default_value=_NONE,
        )
        token_of_node = np.full(count, _NONE, np.int32)
        token_of_node[node] = np.arange(len(tokens))
        self._token_of_node = tf.constant(token_of_node)

    def find(self, codes: tf.RaggedTensor) -> tf.Tensor:
        """Finds tokens.

        Args:
            codes: Code points (texts, None).

        Returns:
            By length, from 1 on, and by the place where it begins, the number of the token, -1 for
            none: int32 (lengths, code points). There are as many lengths as tokens were found of.
        """
        row_ends = tf.gather(codes.row_limits(), codes.value_rowids())
        places = tf.range(tf.size(codes.values, tf.int64))
        last = tf.maximum(tf.size(codes.values, tf.int64) - 1, 0)

        def step(
            length: tf.Tensor, nodes: tf.Tensor, found: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
            place = places + tf.cast(length, tf.int64)
            alive = (nodes >= 0) & (place < row_ends)
            code = tf.cast(tf.gather(codes.values, tf.minimum(place, last)), tf.int64)
            key = tf.cast(nodes, tf.int64) * 2**_CODE_BITS + code
            nodes = tf.where(alive, self._next.lookup(tf.where(alive, key, _NONE)), _NONE)
            token = tf.gather(self._token_of_node, tf.maximum(nodes, 0))
            return length + 1, nodes, found.write(length, token)

        def goes_on(length: tf.Tensor, nodes: tf.Tensor, found: tf.TensorArray) -> tf.Tensor:
            return (length < self._longest) & ((length < 1) | tf.reduce_any(nodes >= 0))

        found = tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[None])
        nodes = tf.zeros_like(codes.values)
        _, _, found = tf.while_loop(goes_on, step, (0, nodes, found))
        return found.stack()
