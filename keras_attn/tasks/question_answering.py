"""Extractive question answering: answers that are parts of a context."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import in_batches, length_sorted_batches
from keras_attn.tasks.serving import IDS, TEXTS, ServingFunction, compiled
from keras_attn.tasks.text_inputs import has_segments, require_pair
from keras_attn.tasks.texts import check_positions, check_texts, example_texts, padded, real_ids
from keras_attn.tasks.token_view import TokenView, token_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.tokenizers.question_windows import QuestionWindows, WindowFormat, question_windows
from keras_attn.tokenizers.text_pairs import (
    BETWEEN,
    require_ends_between,
    segment_ids,
    split_pairs,
)
from keras_attn.validation import require, require_positive

_HIDDEN = -1e9
_BUDGET = 1 << 14  # characters of a batch


class Answer(NamedTuple):
    """An answer in a context.

    Attributes:
        text: The answer, "" for none.
        score: Its probability among all parts of the context that may be an answer.
        start: Where it begins, in characters of the context.
        end: Where it ends, exclusive.

    Examples:
        >>> context, answer = "Anna lives in Rome.", Answer("Rome", 0.9, start=14, end=18)
        >>> context[answer.start : answer.end]
        'Rome'
    """

    text: str
    score: float
    start: int
    end: int


class QuestionAnsweringTask(Task):
    """Finds the part of a context that answers a question.

    The model reads `[start] + question + [end] + context + [end]`, and computes for each token of
    the context how well an answer begins and ends there. A context that is too long is read in
    windows that overlap; the best part of all windows is the answer.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits (batch, length, 2),
            of begin and end, such as `keras_attn.models.TokenClassifier` with two classes.
        tokenizer: Tokenizer of questions and contexts; it must know the places of tokens.
        max_length: Maximum number of tokens of a window, with its question and special tokens.
        overlap: Number of tokens that a window shares with the one before, at most half of it.
        max_question_length: Maximum number of tokens of a question, whose end is left out.
        max_answer_length: Maximum number of tokens of an answer.
        no_answer: Whether a question may have no answer: if the first token scores higher, in the
            window where it scores lowest, than the best part of the context.
        ends_between: Number of end tokens between question and context: 1 as in BERT, 2 as in
            RoBERTa.
        segments: Whether the model receives which text each token belongs to, as BERT does.

    Raises:
        UserError: The tokenizer does not know places, the model has not two outputs, a length is
            not positive, leaves no room or exceeds the model's positions, or the model has no
            segments.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ?")
        >>> model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=2)
        >>> task = QuestionAnsweringTask(model, tokenizer, max_length=32, segments=True)
        >>> context = "anna lives in rome"
        >>> answer = task.answer("who?", context)  # of a model that is not trained yet
        >>> answer.text == context[answer.start : answer.end]
        True

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, sections 4.2 and 4.3.
    """

    kind = "question_answering"
    loss_values = ("loss",)
    pairs = True
    with_start = True
    _saved: ClassVar[tuple[str, ...]] = (
        *("max_length", "overlap", "max_question_length", "max_answer_length"),
        *("no_answer", "ends_between", "segments"),
    )

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        max_length: int = 384,
        overlap: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        no_answer: bool = False,
        ends_between: int = 1,
        segments: bool = False,
    ):
        super().__init__(backbone, {"text": tokenizer})
        outputs = backbone.output_shape[-1]
        require(outputs == 2, "The model must have two outputs, begin and end.", outputs=outputs)
        require_positive(
            max_length=max_length,
            max_question_length=max_question_length,
            max_answer_length=max_answer_length,
        )
        require(overlap >= 0, "`overlap` must be at least 0.", overlap=overlap)
        require_ends_between(ends_between)
        check_positions(backbone, max_length, max_length=max_length)
        require(
            not segments or has_segments(backbone),
            "`segments` needs a model with two segments, such as `Bert`.",
            segments=segments,
            model=type(backbone).__name__,
        )
        tokenizer.require_places()
        # A short window is for the question and the context in equal parts.
        room = max_length - 2 - ends_between
        require(room > 1, "`max_length` must leave room for two tokens.", max_length=max_length)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.overlap = overlap
        self.max_question_length = min(max_question_length, room // 2)
        self.max_answer_length = max_answer_length
        self.no_answer = bool(no_answer)
        self.ends_between = ends_between
        self.segments = bool(segments)
        self._answers = ModelGraph(backbone, self._answered, [TEXTS, TEXTS], self._settings)

    @property
    def window_format(self) -> WindowFormat:
        """How contexts are cut into windows."""
        lengths = (self.max_length, self.overlap, self.max_question_length)
        return WindowFormat(*lengths, self.ends_between)

    def loss(self, labels: tf.Tensor, outputs: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the mean cross-entropy of begin and end, over the tokens that may be them.

        Args:
            labels: int32 (windows, 4): the positions at which the answer begins and ends, both 0 if
                it is not in the window, and -1 at padding; where the context begins, and where it
                has ended.
            outputs: Floating (windows, length, 2).
            label_smoothing: Must be 0.

        Returns:
            The loss twice, the number of windows, and how many begins and ends are both right.
        """
        require(label_smoothing == 0, "Places are not smoothed.", label_smoothing=label_smoothing)
        outputs = tf.cast(outputs, tf.float64 if outputs.dtype == tf.float64 else tf.float32)
        logits = tf.transpose(outputs, [0, 2, 1])  # (windows, 2, length)
        position = tf.range(tf.shape(logits)[2])
        inside = (position >= labels[:, 2:3]) & (position < labels[:, 3:4])
        logits = tf.where((inside | (position == 0))[:, None], logits, _HIDDEN)
        places, is_real = labels[:, :2], labels[:, 0] >= 0
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(places, 0), logits)
        loss = tf.reduce_sum(tf.where(is_real[:, None], losses, 0.0)) / 2
        is_right = tf.argmax(logits, axis=2, output_type=tf.int32) == places
        is_right = is_real & tf.reduce_all(is_right, axis=1)
        count, right = (tf.reduce_sum(tf.cast(x, outputs.dtype)) for x in (is_real, is_right))
        return loss, loss, count, right

    def predict(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[str]:
        """Predicts the texts of answers.

        Args:
            inputs: A question and its context each, with a tab between them.
            progress: Called with the number of questions done after each batch.

        Raises:
            UserError: An input is not two texts.
        """
        return [answer.text for answer in self.answers(inputs, progress)]

    def answer(self, question: str, context: str) -> Answer:
        """Answers a question.

        Raises:
            UserError: A text is not Unicode text.
        """
        questions, contexts = check_texts("texts", [question]), check_texts("texts", [context])
        return answers_of(self._answers(tf.constant(questions), tf.constant(contexts)))[0]

    def answers(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """Predicts answers with their scores and places (see `predict`)."""
        questions, contexts = checked_questions(inputs)

        def computed(questions, contexts):
            return [answers_of(self._answers(tf.constant(questions), tf.constant(contexts)))]

        batches = length_sorted_batches([len(text) for text in contexts], budget=_BUDGET)
        rows = in_batches(batches, computed, questions, contexts, progress=progress)
        return [answer for (answer,) in rows]

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        del n_best  # a question has one answer
        compute = compiled(self._logits, jit)
        texts = {"question": TEXTS, "context": TEXTS}

        def from_ids(token_ids):
            logits = compute(real_ids(token_ids))
            return {"starts": logits[:, :, 0], "ends": logits[:, :, 1]}

        def examples_of_ids(examples):
            return {"token_ids": self.input_ids(tf.constant(examples))}

        def answer(question, context):
            return self._answered(question, context, compute)

        return {
            "serving_default": ServingFunction(answer, texts, _split_examples),
            "token_ids": ServingFunction(
                from_ids,
                {"token_ids": IDS},
                examples_of_ids,
                longest={"token_ids": self.max_length},
                compared=_as_probabilities,
            ),
            "attention": attention_function(self.backbone, self._read_both, texts, _split_examples),
        }

    def input_ids(self, inputs: tf.Tensor) -> tf.Tensor:
        """Tokenizes questions with the first window of their contexts.

        Args:
            inputs: Strings (batch,), a question and its context each, with a tab between them.

        Returns:
            int32 (batch, length).
        """
        windows = question_windows(self.tokenizer, *split_pairs(inputs), self.window_format)
        return self._first_windows(windows)

    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Tokenizes questions with the first window of their contexts, and names their tokens."""
        return self._read_both(*split_pairs(strings))

    def model_inputs(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for ids (batch, length), padded with 0."""
        segments = {"segment_ids": self._segments(ids)} if self.segments else {}
        return {"token_ids": ids} | segments

    def example_texts(self) -> list[str]:
        """Returns a few questions with contexts, one of them of several windows."""
        question, *_ = example_texts(self.tokenizer, self.max_question_length + 1)
        contexts = example_texts(self.tokenizer, 10)
        # Tokens that differ: of parts with equal scores, rounding would decide.
        first, count = int(np.flatnonzero(self.tokenizer.is_special).max()) + 1, self.max_length
        ids = range(first, min(first + count + count // 2, self.tokenizer.vocabulary_size))
        if len(ids) > count:
            contexts.append(self.tokenizer.detokenize([list(ids)]).numpy()[0].decode())
        return [f"{question}{BETWEEN}{one.replace(BETWEEN, ' ')}" for one in contexts]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of questions and contexts, with the special ones."""
        both = (self.tokenizer.tokenize(part).row_lengths() for part in split_pairs(texts))
        return (sum(both) + 2 + self.ends_between).numpy().tolist()

    def _segments(self, ids):
        # A start that is an end is no end.
        after = tf.concat([-tf.ones_like(ids[:, :1]), ids[:, 1:]], axis=1)
        return segment_ids(after, self.tokenizer.end_id)

    def _first_windows(self, windows: QuestionWindows) -> tf.Tensor:
        first = tf.cumsum(windows.counts, exclusive=True)
        return padded(tf.gather(windows.ids, first))

    def _read_both(self, questions, contexts):
        windows = question_windows(self.tokenizer, questions, contexts, self.window_format)
        ids = self._first_windows(windows)
        return TokenView(self.model_inputs(ids), source=token_texts(self.tokenizer, ids))

    def _logits(self, ids):
        return tf.cast(self.backbone(self.model_inputs(ids)), tf.float32)

    def _answered(self, questions, contexts, compute=None):
        windows = question_windows(self.tokenizer, questions, contexts, self.window_format)
        logits = (compute or self._logits)(padded(windows.ids))
        spans = _span_scores(logits, windows, self.max_answer_length)  # (windows, length · most)
        most = self.max_answer_length
        place = tf.argmax(spans, axis=1)
        best, total = tf.reduce_max(spans, axis=1), tf.reduce_logsumexp(spans, axis=1)

        def of_windows(values, other):
            return tf.RaggedTensor.from_row_lengths(values, windows.counts).to_tensor(other)

        chosen = tf.argmax(of_windows(best, 4 * _HIDDEN), axis=1)
        chosen += tf.cumsum(windows.counts, exclusive=True)
        best, place = tf.gather(best, chosen), tf.gather(place, chosen)
        total = tf.reduce_logsumexp(of_windows(total, 4 * _HIDDEN), axis=1)
        none = tf.reduce_min(of_windows(tf.reduce_sum(logits[:, 0], axis=1), np.inf), axis=1)
        has_answer = best > _HIDDEN / 2
        if self.no_answer:
            total = tf.reduce_logsumexp(tf.stack([total, none]), axis=0)
            has_answer &= best >= none
        offset = tf.gather(windows.first - windows.begin, chosen)
        begin = offset + place // most
        start, stop = (
            tf.gather(tf.concat([rows.values, [0]], axis=0), rows.row_starts() + token)
            for rows, token in (
                (windows.starts, tf.where(has_answer, begin, 0)),
                (windows.stops, tf.where(has_answer, begin + place % most, 0)),
            )
        )
        start, stop = tf.where(has_answer, start, 0), tf.where(has_answer, stop, 0)
        text = tf.strings.substr(contexts, start, stop - start, unit="UTF8_CHAR")
        # Tokens may begin with the space before a word.
        bare = tf.strings.regex_replace(text, r"^\s+", "")
        before, text = _size(text) - _size(bare), tf.strings.regex_replace(bare, r"\s+$", "")
        start += before
        score = tf.exp(tf.where(has_answer, best, none if self.no_answer else 4 * _HIDDEN) - total)
        return {"answer": text, "score": score, "start": start, "end": start + _size(text)}


def _size(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.length(texts, unit="UTF8_CHAR")


def _span_scores(logits: tf.Tensor, windows: QuestionWindows, most: int) -> tf.Tensor:
    """The scores of all parts of windows of up to `most` tokens, (windows, length · most)."""
    position = tf.range(tf.shape(logits, tf.int64)[1])
    inside = (position >= windows.begin[:, None]) & (position < windows.end[:, None])
    starts, ends = (tf.where(inside, logits[:, :, side], _HIDDEN) for side in (0, 1))
    length = tf.shape(logits)[1]
    ends = tf.pad(ends, [[0, 0], [0, most - 1]], constant_values=_HIDDEN)
    spans = tf.stack([starts + ends[:, more : more + length] for more in range(most)], axis=2)
    return tf.reshape(spans, [tf.shape(logits)[0], length * most])


def answers_of(outputs: Mapping[str, Any]) -> list[Answer]:
    """The answers of a batch, from tensors or arrays by name."""
    columns = (np.asarray(outputs[name]).tolist() for name in ("answer", "score", "start", "end"))
    return [Answer(text.decode(), *rest) for text, *rest in zip(*columns, strict=True)]


def checked_questions(inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits inputs into questions and contexts.

    Raises:
        UserError: An input is not two texts with a tab between them.
    """
    inputs = check_texts("inputs", inputs)
    for text in inputs:
        require_pair(text)
    split = [text.split(BETWEEN) for text in inputs]
    return [question for question, _ in split], [context for _, context in split]


def _as_probabilities(logits: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Probabilities of the places of each text."""
    return {name: tf.nn.softmax(array).numpy() for name, array in logits.items()}


def _split_examples(examples: Sequence[str]) -> Mapping[str, list[str]]:
    questions, contexts = checked_questions(examples)
    return {"question": questions, "context": contexts}
