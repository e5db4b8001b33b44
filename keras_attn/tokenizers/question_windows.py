"""Questions and windows of their contexts as token ids, with the places of the tokens."""

import dataclasses

import tensorflow as tf

from keras_attn.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True)
class WindowFormat:
    """How contexts are cut into windows.

    Attributes:
        max_length: Most ids of a window: start, question, end, part of the context and end.
        overlap: Number of tokens that a window shares with the one before, at most half of it.
        max_question_length: Most tokens of a question; its end is left out.
        ends_between: Number of end ids between question and context, 1 or 2.
    """

    max_length: int
    overlap: int = 128
    max_question_length: int = 64
    ends_between: int = 1


@dataclasses.dataclass(frozen=True)
class QuestionWindows:
    """Windows of contexts, all of a batch one after the other.

    Attributes:
        ids: `[start] + question + [end] + part of the context + [end]`, int32 (windows, None),
            ragged.
        rows: The question of each window, (windows,).
        counts: Number of windows of each question, at least 1, (batch,).
        first: The first token of each window, a number in its context, (windows,).
        begin: The position of that token in the ids, (windows,).
        end: The position behind the last one of the context, (windows,).
        starts: Where each token of a context begins, in characters, int32 (batch, None), ragged.
        stops: Where it ends.
    """

    ids: tf.RaggedTensor
    rows: tf.Tensor
    counts: tf.Tensor
    first: tf.Tensor
    begin: tf.Tensor
    end: tf.Tensor
    starts: tf.RaggedTensor
    stops: tf.RaggedTensor


def question_windows(
    tokenizer: Tokenizer, questions: tf.Tensor, contexts: tf.Tensor, form: WindowFormat
) -> QuestionWindows:
    """Cuts contexts into windows that overlap, each behind its question, inside a graph.

    Args:
        tokenizer: Of both; it must know the places of tokens.
        questions: Strings (batch,).
        contexts: Strings (batch,).
        form: The format.

    Returns:
        The windows of the first context, followed by those of the second one, and so on.

    Raises:
        UserError: The tokenizer does not know the places of its tokens.

    Examples:
        >>> form = WindowFormat(max_length=8, overlap=1)
        >>> windows = question_windows(CharacterTokenizer("abc"), ["a"], ["abcab"], form)
        >>> windows.ids.to_list()
        [[1, 4, 2, 4, 5, 6, 4, 2], [1, 4, 2, 4, 5, 2]]
    """
    asked = tokenizer.tokenize_with_places(questions)[0][:, : form.max_question_length]
    ids, starts, stops = tokenizer.tokenize_with_places(contexts)
    length, begin = ids.row_lengths(), 1 + asked.row_lengths() + form.ends_between
    room = tf.maximum(form.max_length - 1 - begin, 1)
    step = tf.maximum(room - form.overlap, (room + 1) // 2)
    counts = 1 + (tf.maximum(length - room, 0) + step - 1) // step
    rows = tf.repeat(tf.range(ids.nrows()), counts)
    first = tf.ragged.range(counts).values * tf.gather(step, rows)
    kept = tf.minimum(tf.gather(room, rows), tf.gather(length, rows) - first)
    at = tf.gather(ids.row_starts(), rows) + first
    parts = tf.ragged.range(at, at + kept)
    parts = parts.with_values(tf.gather(ids.values, parts.values))

    def special(token_id: int, times: int = 1) -> tf.Tensor:
        return tf.fill([tf.size(rows), times], tf.constant(token_id, ids.dtype))

    whole = [
        special(tokenizer.start_id),
        tf.gather(asked, rows),
        special(tokenizer.end_id, form.ends_between),
        parts,
        special(tokenizer.end_id),
    ]
    begin = tf.gather(begin, rows)
    return QuestionWindows(
        ids=tf.concat(whole, axis=1),
        rows=rows,
        counts=counts,
        first=first,
        begin=begin,
        end=begin + kept,
        starts=starts,
        stops=stops,
    )
