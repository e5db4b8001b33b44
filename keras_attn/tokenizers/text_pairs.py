"""Pairs of texts in one string, and as token ids that share a length."""

from typing import Any

import tensorflow as tf

from keras_attn.tokenizers.base import Tokenizer
from keras_attn.validation import require_one_of

BETWEEN = "\t"
"""What is between the texts of a pair."""


def require_ends_between(ends_between: int) -> None:
    """Raises a `UserError` unless there are one or two end tokens between the texts of a pair."""
    require_one_of("ends_between", ends_between, (1, 2))


def segment_ids(ids: tf.Tensor, end_id: int) -> tf.Tensor:
    """Finds inside a graph to which text of a pair each token belongs.

    Args:
        ids: int32 (batch, length), an end id after the first text, 0 as padding.
        end_id: The end id.

    Returns:
        int32 (batch, length): 1 at what follows the first end id, 0 before it and at padding.

    Examples:
        >>> segment_ids(tf.constant([[1, 7, 2, 8, 9, 2, 0]]), end_id=2).numpy()
        array([[0, 0, 0, 1, 1, 1, 0]], dtype=int32)
    """
    ends = tf.cumsum(tf.cast(ids == end_id, tf.int32), axis=1, exclusive=True)
    return tf.cast((ends > 0) & (ids != 0), tf.int32)


def pair_ids(tokenizer: Tokenizer, pairs: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    r"""Tokenizes pairs of texts inside a graph, without start and end.

    Args:
        tokenizer: Of the texts.
        pairs: Strings (batch,), each two texts with one tab between them.

    Returns:
        The ids of the first and of the second texts, both int32 (batch, None), ragged.

    Raises:
        InvalidArgumentError: A string has no tab or several, when the graph runs.

    Examples:
        >>> first, second = pair_ids(CharacterTokenizer("abc"), ["ab\tc", "a\tcb"])
        >>> first.to_list(), second.to_list()
        ([[4, 5], [4]], [[6], [6, 5]])
    """
    first, second = split_pairs(pairs)
    return tokenizer.tokenize(first), tokenizer.tokenize(second)


def split_pairs(pairs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits pairs of texts inside a graph.

    Args:
        pairs: Strings (batch,), each two texts with one tab between them.

    Returns:
        The first and the second texts, strings (batch,).

    Raises:
        InvalidArgumentError: A string has no tab or several, when the graph runs.
    """
    parts = tf.strings.split(pairs, BETWEEN)
    tabs = tf.cast(parts.row_lengths(), tf.int32) - 1
    wrong = tf.boolean_mask(tabs, tabs != 1)
    message = ["A pair is two texts with one tab between them. Received tabs:", wrong[:1]]
    asserted = tf.debugging.Assert(tf.size(wrong) == 0, message)
    with tf.control_dependencies([] if asserted is None else [asserted]):
        texts = tf.reshape(tf.identity(parts.values), [-1, 2])
    return texts[:, 0], texts[:, 1]


def shared_lengths(first: Any, second: Any, room: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Divides room between two texts: a half for each, and what one leaves is for the other.

    Of an odd room the longer text has one token more, and of texts of one length the second, as
    "longest_first" of the `tokenizers` library has it.

    Args:
        first: Lengths of the first texts, integers (batch,).
        second: Lengths of the second texts.
        room: Greatest sum of both.

    Returns:
        The lengths that are kept of both.

    Examples:
        >>> kept = shared_lengths(np.array([9, 9, 2, 1]), np.array([9, 2, 9, 3]), room=7)
        >>> [lengths.numpy().tolist() for lengths in kept]
        [[3, 5, 2, 1], [4, 2, 5, 3]]
    """
    half = room // 2 + tf.where(first > second, room % 2, 0)
    kept = tf.minimum(first, tf.maximum(room - second, tf.cast(half, first.dtype)))
    return kept, tf.minimum(second, room - kept)
