"""Splitting of words into the most probable tokens."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.pipeline.trie import Trie

_PENALTY = 10.0  # of an unknown character, below the least score


class Unigrams(tf.Module):
    """Splits words into the tokens with the greatest sum of scores.

    Sums are of double precision and in the order of the `tokenizers` library, because many words
    have several best splits, such as rows of dots, which rounding decides between. (SentencePiece
    has single precision.)

    Args:
        tokens: The tokens.
        scores: Their scores.
        ids: Their ids.
        unknown_id: The id of one or several unknown characters in a row.
        bytes_of_unknown: The ids of the 256 bytes that unknown characters are spelled in, if any.

    Reference: Kudo 2018, "Subword Regularization", https://arxiv.org/abs/1804.10959, section 3.2.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        scores: Sequence[float],
        ids: Sequence[int],
        unknown_id: int,
        bytes_of_unknown: Sequence[int] = (),
    ) -> None:
        super().__init__(name="unigrams")
        self._trie = Trie(tokens)
        self._unknown_id = unknown_id
        # Gathered by the number of a token plus 1; 0 is none.
        self._scores = tf.constant([-np.inf, *scores], tf.float64)
        self._ids = tf.constant([unknown_id, *ids], tf.int32)
        self._unknown_score = tf.constant(min(scores) - _PENALTY, tf.float64)
        self._bytes = tf.constant(bytes_of_unknown, tf.int32) if bytes_of_unknown else None

    def __call__(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of words, int32 (words, None)."""
        return self.with_lengths(words)[0]

    def with_lengths(self, words: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Returns the ids of words, and the characters of each unknown token, 0 for the others.

        Args:
            words: Strings (words,).

        Returns:
            int32 (words, None), and int32 (tokens,).
        """
        codes = tf.strings.unicode_decode(words, "UTF-8", errors="replace")
        tokens = self._trie.find(codes) + 1  # (lengths, code points)
        scores = tf.gather(self._scores, tokens)
        single = tf.where(tokens[:1] == 0, self._unknown_score, scores[:1])
        lengths = _best_lengths(tf.concat([single, scores[1:]], axis=0), codes)
        begins = tf.where(lengths > 0)[:, 0]
        chosen = tf.stack([tf.gather(lengths, begins) - 1, begins], axis=1)
        ids = tf.gather(self._ids, tf.gather_nd(tokens, chosen))
        rows = tf.gather(codes.value_rowids(), begins)
        if self._bytes is not None:
            ids = self._spelled(ids, tf.gather(codes.values, begins))
            ids = _by_row(ids, rows, codes.nrows()).merge_dims(1, 2)
            return ids, tf.zeros_like(ids.values)
        unknown = ids == self._unknown_id
        again = tf.concat([[False], unknown[1:] & unknown[:-1] & (rows[1:] == rows[:-1])], axis=0)[
            : tf.size(ids)
        ]
        run = tf.cumsum(tf.cast(~again, tf.int32)) - 1
        counts = tf.math.segment_sum(tf.cast(unknown, tf.int32), run)
        ids, rows = (tf.boolean_mask(x, ~again) for x in (ids, rows))
        return _by_row(ids, rows, codes.nrows()), counts

    def _spelled(self, ids: tf.Tensor, codes: tf.Tensor) -> tf.RaggedTensor:
        """The ids of tokens (tokens, None), of unknown characters those of their bytes."""
        unknown = ids == self._unknown_id
        texts = tf.strings.unicode_encode(codes[:, None], "UTF-8")
        texts = tf.where(unknown, texts, "")
        content = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8), tf.int32)
        in_bytes = tf.RaggedTensor.from_row_lengths(
            tf.gather(self._bytes, content),
            tf.cast(tf.strings.length(texts), tf.int64),
            validate=False,
        )
        known = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(ids, ~unknown), tf.cast(~unknown, tf.int64), validate=False
        )
        return tf.concat([known, in_bytes], axis=1)


def _by_row(values: tf.Tensor | tf.RaggedTensor, rows: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return tf.RaggedTensor.from_value_rowids(values, rows, count, validate=False)


def _best_lengths(scores: tf.Tensor, codes: tf.RaggedTensor) -> tf.Tensor:
    """The best split of words, by Viterbi's algorithm.

    Args:
        scores: The score of the token of each length that begins at each code point, minus infinity
            for none: float64 (lengths, code points).
        codes: The code points of words (words, None).

    Returns:
        At each code point the length of the token that begins there, 0 for none: int64.
    """
    most, size = tf.shape(scores)[0], tf.size(codes.values)
    # The longest words first, so that those that are not at their end are the first ones.
    order = tf.argsort(codes.row_lengths(), direction="DESCENDING", stable=True)
    ends = tf.cast(tf.gather(codes.row_lengths(), order), tf.int32)
    starts = tf.cast(tf.gather(codes.row_starts(), order), tf.int32)
    steps = tf.reduce_max(tf.concat([ends, [0]], axis=0))
    lengths = tf.range(most, 0, -1)  # the longest counts where sums are equal
    flat_scores = tf.reshape(scores, [-1])

    def forward(
        end: tf.Tensor, recent: tf.Tensor, choices: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        """`recent` has the best sums at the places before `end`, in the order of `lengths`."""
        count = tf.reduce_sum(tf.cast(ends >= end, tf.int32))
        places = tf.maximum(starts[:count, None] + end - lengths, 0)
        sums = recent[:count] + tf.gather(flat_scores, (lengths - 1) * size + places)
        choice = tf.argmax(sums, axis=1, output_type=tf.int32)
        best = tf.reduce_max(sums, axis=1)
        recent = tf.concat([recent[:count, 1:], best[:, None]], axis=1)
        return end + 1, recent, choices.write(end - 1, tf.gather(lengths, choice))

    recent = tf.where(lengths == 1, tf.constant(0.0, tf.float64), -np.inf)
    recent = tf.repeat(recent[None], tf.size(ends), axis=0)
    choices = tf.TensorArray(tf.int32, steps, infer_shape=False, element_shape=[None])
    _, _, choices = tf.while_loop(
        lambda end, *_: end <= steps,
        forward,
        (1, recent, choices),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape(None)),
    )

    def backward(
        end: tf.Tensor, place: tf.Tensor, found: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """`place` is where the rest of each word ends that is not split yet."""
        choice = choices.read(end - 1)
        count = tf.size(choice)
        is_end = place[:count] == end
        begin = end - choice
        index = tf.boolean_mask(starts[:count] + begin, is_end)
        found = tf.tensor_scatter_nd_update(found, index[:, None], tf.boolean_mask(choice, is_end))
        place = tf.concat([tf.where(is_end, begin, place[:count]), place[count:]], axis=0)
        return end - 1, place, found

    _, _, found = tf.while_loop(
        lambda end, *_: end > 0,
        backward,
        (steps, ends, tf.zeros([size], tf.int32)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return tf.cast(found, tf.int64)
