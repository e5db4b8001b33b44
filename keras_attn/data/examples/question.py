"""Questions and windows of contexts as token ids, for models that find answers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples.base import IDS, Batch, Examples, Signature
from keras_attn.data.examples.labelled import with_segments
from keras_attn.data.questions import Questions
from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer
from keras_attn.tokenizers.question_windows import WindowFormat, question_windows
from keras_attn.tokenizers.text_pairs import split_pairs
from keras_attn.validation import UserError

_QUESTIONS_A_CALL = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionExamples(Examples):
    r"""Windows of contexts behind their questions, with the places of answers.

    A batch is `({"token_ids": (rows, length)}, labels (rows, 4))`, the labels as
    `QuestionAnsweringTask.loss` takes them: the positions at which the answer begins and ends, 0
    if it is not in the window; where the context begins, and where it has ended. Of padding the
    first two are -1.

    Attributes:
        text: The windows.
        places: The labels, int32 (rows, 4).
        segments: The end id after which segment 1 begins, or `None` for a model without segments.

    Examples:
        >>> from keras_attn.tokenizers.question_windows import WindowFormat
        >>> questions = Questions(["a\tbcab"], [("ca",)], starts=[1])
        >>> form = WindowFormat(max_length=16)
        >>> tokenizer = CharacterTokenizer("abc")
        >>> examples = QuestionExamples.from_questions(questions, tokenizer, form)
        >>> inputs, labels = examples.assemble([0])
        >>> inputs["token_ids"], labels
        (array([[1, 4, 2, 5, 6, 4, 5, 2]], dtype=int32), array([[4, 5, 3, 7]], dtype=int32))
    """

    text: TokenRows
    places: np.ndarray
    segments: int | None = None

    kind: ClassVar = "question"
    read_units = ("windows", "tokens")

    @classmethod
    def from_questions(
        cls,
        questions: Questions,
        tokenizer: Tokenizer,
        form: WindowFormat,
        segments: bool = False,
    ) -> "QuestionExamples":
        """Tokenizes questions and contexts.

        Args:
            questions: Questions with answers.
            tokenizer: Tokenizer of both; it must know the places of tokens.
            form: How contexts are cut into windows.
            segments: Whether a batch has the segments of questions and contexts.

        Returns:
            All windows; the first token is the answer of those without one.

        Raises:
            UserError: The tokenizer does not know the places of its tokens, or no answer is left.
        """
        ids, lengths, labels, windows = [], [], [], []
        for begin in range(0, len(questions), _QUESTIONS_A_CALL):
            end = begin + _QUESTIONS_A_CALL
            with tf.device("CPU"):
                texts = split_pairs(tf.constant(questions.sources[begin:end]))
                found = question_windows(tokenizer, *texts, form)
            columns = (questions.starts[begin:end], questions.targets[begin:end])
            spans = (found.starts.to_list(), found.stops.to_list())
            answers = [
                _tokens_of(starts, stops, start, len(right[0]) if right else 0)
                for starts, stops, start, right in zip(*spans, *columns, strict=True)
            ]
            of_window, first, inside, behind = (
                np.asarray(x) for x in (found.rows, found.first, found.begin, found.end)
            )
            begins, ends = np.array(answers)[of_window].T + inside - first
            has_answer = (begins >= inside) & (ends < behind) & (ends >= begins)
            found_places = [begins * has_answer, ends * has_answer, inside, behind]
            ids.append(found.ids.values.numpy())
            lengths.append(found.ids.row_lengths().numpy())
            labels.append(np.stack(found_places, axis=1).astype(np.int32))
            windows.append(of_window + begin)
        places, rows = np.concatenate(labels), np.concatenate(windows)
        lost = len(questions) - len(np.unique(rows[places[:, 1] > 0]))
        lost -= sum(not answers for answers in questions.targets)
        if not (places[:, 1] > 0).any():
            raise UserError(
                f"No answer of {questions.name} is left: none of {len(questions):,} lies in a "
                f"window of {form.max_length} tokens."
            )
        note = f"{lost:,} answers that no window holds as a whole"
        return cls(
            text=TokenRows.of_lengths(np.concatenate(ids), np.concatenate(lengths)),
            places=places,
            segments=tokenizer.end_id if segments else None,
            indices=rows,
            name=questions.name,
            notes=(note,) if lost else (),
        )

    @property
    def signature(self) -> Signature:
        """Specifications of a batch."""
        inputs = {"token_ids": IDS} | ({} if self.segments is None else {"segment_ids": IDS})
        return inputs, tf.TensorSpec([None, 4], tf.int32)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        labels = np.tile(np.array([-1, -1, 0, 0], np.int32), (shape[0], 1))
        labels[: len(rows)] = self.places[rows]
        return with_segments(self.text.padded(rows, shape), self.segments), labels


def _tokens_of(starts: list[int], stops: list[int], begin: int, size: int) -> tuple[int, int]:
    """The first and the last token of an answer; those of no answer are in no window."""
    if begin < 0 or not starts:
        return -1 << 30, -1 << 30
    first = int(np.searchsorted(stops, begin, side="right"))
    last = int(np.searchsorted(starts, begin + size, side="left")) - 1
    return first, last
