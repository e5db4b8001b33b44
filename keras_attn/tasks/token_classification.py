"""Token classification, such as named entity recognition."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from keras_attn.ops.padding import order_with_padding_last
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import Hypothesis, best_text, found_hypotheses, in_batches
from keras_attn.tasks.labels import LabelTask
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled
from keras_attn.tasks.text_task import TextTask
from keras_attn.tasks.texts import (
    FRAME,
    check_framed_length,
    check_pairs,
    check_texts,
    fitting,
    fitting_batches,
    framed,
    real_ids,
)
from keras_attn.tasks.truncating import TruncatingTask
from keras_attn.tokenizers import Tokenizer, split_words, word_pieces
from keras_attn.validation import require, require_one_of

UNTAGGED = "_"
"""In place of the tags of words that were not read, as in CoNLL-U."""

_NUMBERS = tf.TensorSpec([None], tf.int32)


class TokenClassificationTask(TruncatingTask, LabelTask, TextTask):
    """Tags each word of a text, for example with named entities or parts of speech.

    Words are separated by ASCII white space and tokenized one by one; start and end tokens surround
    the text, and the tag of a word is predicted at its first token. The tags of words are
    conditionally independent given the text.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits
            (batch, length, tags), such as `keras_attn.models.TokenClassifier`.
        tokenizer: Tokenizer of the words. One that distinguishes pieces at the beginning of a word
            from others, as WordPiece and SentencePiece do, shows the model where words begin.
        labels: The tags, without white space, in the order of the logits.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        truncate: Whether to read the beginning of longer texts alone; their other words get the
            tag `UNTAGGED`. Otherwise they are an error.

    Raises:
        UserError: The tags are fewer than two, repeated, empty, not single words, or not as many as
            the logits, or `max_length` is less than 3 or exceeds the model's positions.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyzAR")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=3)
        >>> task = TokenClassificationTask(model, tokenizer, ["O", "PER", "LOC"])
        >>> [tags] = task.predict(["Anna lives in Rome"])  # of a model that is not trained yet
        >>> len(tags.split())
        4

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 5.3.
    """

    kind = "token_classification"
    _saved = ("labels", "max_length", "truncate")
    _saved_later: ClassVar = {"truncate": False}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
        truncate: bool = True,
    ):
        super().__init__(backbone, {"text": tokenizer}, labels)
        for label in self.labels:
            require(split_words(label) == [label], "A tag must be one word.", tag=label)
        check_framed_length(backbone, max_length)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.truncate = bool(truncate)
        self._answers = ModelGraph(backbone, self._answer, [TEXTS], self._settings)
        self._scores = ModelGraph(backbone, self._score, [TEXTS, _NUMBERS], self._settings)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predicts the tags of each text's words, separated by spaces.

        Raises:
            UserError: An input is not text, or exceeds the maximum length of a task that does not
                truncate.
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int = 1,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the tags of each text's words, with their log-probability.

        Args:
            texts: The texts.
            n_best: Must be 1: every word has one tag.
            beams: Must be `None`: tags are predicted without a beam search.
            progress: Called with the number of texts done after each batch.

        Returns:
            For each text its tags, separated by spaces; `UNTAGGED` for words beyond the maximum
            length. Score and log-probability are the sum of the log-probabilities of its words'
            tags; 0 for a text without words.

        Raises:
            UserError: A text exceeds the task's maximum length, or `n_best` or `beams` is invalid.
        """
        check_one_answer(n_best, beams)
        texts = check_texts("texts", texts)

        def tag(batch):
            outputs = self._answers(tf.constant(batch))
            score = outputs["log_probability"].numpy()[:, None]
            return outputs["tags"].numpy()[:, None], score, score

        rows = in_batches(self._batches(texts), tag, texts, progress=progress)
        return [found_hypotheses(*row) for row in rows]

    def score(self, texts: Sequence[str], tags: Sequence[str]) -> list[float]:
        """Computes the log-probability of the tags of each text, the sum over the words read.

        Args:
            texts: The texts.
            tags: For each text as many tags as it has words, separated by white space.

        Raises:
            UserError: A text is too long, has not as many tags as words, or one that there is not.
        """
        texts, tags = check_pairs(texts, tags)
        numbers = {label: number for number, label in enumerate(self.labels)}
        rows = [split_words(of_text) for of_text in tags]
        for text, row in zip(texts, rows, strict=True):
            words = len(split_words(text))
            require(words == len(row), "Every word must have a tag.", words=words, tags=len(row))
            for tag in row:
                require_one_of("tag", tag, numbers)

        def score(batch, rows_of_batch):
            flat = [numbers[tag] for row in rows_of_batch for tag in row]
            return [self._scores(tf.constant(batch), tf.constant(flat, tf.int32)).numpy()]

        return [float(value) for (value,) in in_batches(self._batches(texts), score, texts, rows)]

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts, with start and end tokens around each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length, and the task does not
                truncate.
        """
        return self._tokenized(texts)[1]

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        del n_best  # a word has one tag
        classify = compiled(self._classify, jit)

        def from_ids(token_ids):
            scores = classify(real_ids(token_ids))
            places = tf.argsort(order_with_padding_last(token_ids))  # of each id in what is read
            return {"probabilities": tf.exp(tf.gather(scores, places, axis=1, batch_dims=1))}

        return self._signatures(lambda text: self._answer(text, classify), from_ids)

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens."""
        texts = super().example_texts()
        texts = [*texts, " ".join(texts)]
        lengths = self.token_counts(texts)
        return [
            text for text, length in zip(texts, lengths, strict=True) if length <= self.max_length
        ] or [""]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of texts before they are truncated, start and end included."""
        _, pieces = word_pieces(self.tokenizer, tf.constant(list(texts), tf.string))
        return (pieces.merge_dims(1, 2).row_lengths() + FRAME).numpy().tolist()

    def _batches(self, texts):
        lengths = self.token_counts(texts)
        return fitting_batches(texts, lengths, "text", self.max_length, FRAME, self.truncate)

    def _tokenized(self, texts):
        """The words, ragged; ids (batch, length); and where a word begins, boolean."""
        words, pieces = word_pieces(self.tokenizer, texts)
        places = tf.ragged.range(pieces.values.row_lengths())  # of each piece in its word
        begins = words.with_values(places.with_values(places.values == 0)).merge_dims(1, 2)
        ids, longest = pieces.merge_dims(1, 2), self.max_length - FRAME
        if self.truncate:
            ids, begins = ids[:, :longest], begins[:, :longest]
        else:
            ids = fitting(ids, longest + 1, "text")
        # Start and end tokens are not words.
        begins = tf.pad(begins.to_tensor(False), [[0, 0], [1, 1]])
        return words, framed(self.tokenizer, ids), begins

    def _classify(self, token_ids):
        """Log-probabilities (batch, length, tags)."""
        logits = self.backbone({"token_ids": token_ids})
        return tf.nn.log_softmax(tf.cast(logits, tf.float32))

    def _answer(self, texts, classify=None):
        words, ids, begins = self._tokenized(texts)
        scores = tf.boolean_mask((classify or self._classify)(ids), begins)  # (words read, tags)
        read = _positions_read(words, begins)

        def of_words(values, other):
            """Values of the words read, and another one for the others, ragged as the words are."""
            others = tf.fill([tf.size(words.values)], tf.constant(other, values.dtype))
            return words.with_values(tf.tensor_scatter_nd_update(others, read, values))

        tags = of_words(tf.gather(tf.constant(self.labels), tf.argmax(scores, axis=-1)), UNTAGGED)
        best = of_words(tf.reduce_max(scores, axis=-1), 0.0)
        certain = of_words(tf.exp(tf.reduce_max(scores, axis=-1)), 0.0)
        return {
            "tags": tf.strings.reduce_join(tags, axis=-1, separator=" "),
            "log_probability": tf.reduce_sum(best, axis=1),
            "words": words.to_tensor(""),
            "word_tags": tags.to_tensor(""),
            "probabilities": certain.to_tensor(0.0),
        }

    def _score(self, texts, numbers):
        words, ids, begins = self._tokenized(texts)
        scores = tf.boolean_mask(self._classify(ids), begins)
        read = _positions_read(words, begins)
        chosen = tf.gather(scores, tf.gather_nd(numbers, read), batch_dims=1)
        texts_of_words = tf.gather_nd(words.value_rowids(), read)
        return tf.math.unsorted_segment_sum(chosen, texts_of_words, words.nrows())


def _positions_read(words: tf.RaggedTensor, begins: tf.Tensor) -> tf.Tensor:
    """Positions of the words that a model reads among all words, (words read, 1)."""
    counts = tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)  # the first ones of each text
    return tf.where(
        tf.ragged.range(words.row_lengths()).values < tf.gather(counts, words.value_rowids())
    )


def check_one_answer(n_best: int, beams: int | None) -> None:
    """Checks that one answer without a beam search is requested.

    Args:
        n_best: Number of answers.
        beams: Width of the beam search.

    Raises:
        UserError: `n_best` is not 1, or `beams` is given.
    """
    require(n_best == 1, "Every word has one tag.", n_best=n_best)
    require(beams is None, "Tags are predicted without a beam search.", beams=beams)
