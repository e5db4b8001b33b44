"""Ranking of passages for queries."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled
from keras_attn.tasks.text_inputs import TextInputs, require_pair
from keras_attn.tasks.texts import check_texts, framed, joined_ids, shortened
from keras_attn.tasks.token_view import TokenView, token_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.validation import require, require_one_of

ACTIVATIONS = ("sigmoid", "identity")
"""Functions from what the model computes to scores."""

_PASSAGES = tf.TensorSpec([None, None], tf.string)


class RankedPassage(NamedTuple):
    """A passage with its score.

    Attributes:
        passage: The passage.
        score: How well it answers the query, higher is better.
        place: Its place among the passages that were given, counted from 0.

    Examples:
        >>> ranked = [RankedPassage("a cat", 0.9, place=1), RankedPassage("a car", 0.2, place=0)]
        >>> max(ranked, key=lambda one: one.score).passage
        'a cat'
    """

    passage: str
    score: float
    place: int


class RankTask(TextInputs):
    """Scores how well passages answer a query, reading both together (a cross-encoder).

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to (batch, 1), such as
            `keras_attn.models.SequenceClassifier` with one class.
        tokenizer: Tokenizer of queries and passages.
        max_length: Maximum number of tokens of a query and a passage together, including start and
            end tokens.
        with_start: Whether to put the start token before a query, as BERT does.
        truncate: Whether to truncate longer texts: each has half of the room, and what one leaves.
            Otherwise they are an error.
        activation: "sigmoid" for scores between 0 and 1, or "identity".
        ends_between: Number of end tokens between query and passage: 1 as in BERT, 2 as in RoBERTa.
        segments: Whether the model receives which text each token belongs to, as BERT does.

    Raises:
        UserError: The model has several outputs, an option is not one of its values, or the length
            exceeds the model's positions.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = SequenceClassifier(TransformerEncoder(9, **sizes), num_classes=1)
        >>> task = RankTask(model, CharacterTokenizer("abdgo"))
        >>> ranked = task.rank("dog", ["a bag", "a dog"])  # of a model that is not trained yet
        >>> sorted(one.place for one in ranked), ranked[0].score >= ranked[1].score
        ([0, 1], True)

    Reference:
        Nogueira and Cho, 2019, "Passage Re-ranking with BERT", https://arxiv.org/abs/1901.04085.
    """

    kind = "rank"
    loss_values = ("loss",)
    pairs = True
    _saved: ClassVar[tuple[str, ...]] = (
        *("max_length", "with_start", "truncate"),
        *("activation", "ends_between", "segments"),
    )

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
        activation: str = "sigmoid",
        ends_between: int = 1,
        segments: bool = False,
    ):
        super().__init__(backbone, {"text": tokenizer})
        outputs = backbone.output_shape[-1]
        require(outputs == 1, "The model must have one output, the score.", outputs=outputs)
        require_one_of("activation", activation, ACTIVATIONS)
        self.activation = activation
        self.ranking_loss = "listwise"
        how = (True, ends_between, segments)
        self._read_with(tokenizer, max_length, with_start, truncate, *how)

    def loss(self, labels: tf.Tensor, outputs: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the cross-entropy, by the attribute `ranking_loss`.

        "listwise" is that of a softmax over the passages of a list, by the relevances as parts of
        their sum; "pointwise" the binary one of each passage, by its relevance from 0 to 1.

        Args:
            labels: Relevances, floating (lists, size); NaN at padding.
            outputs: Floating (lists · size, 1).
            label_smoothing: Must be 0.

        Returns:
            The loss twice, the number of lists or passages, and how many are right: whose first
            passage is a most relevant one, or whose probability is on the right side of 0.5.
        """
        require(label_smoothing == 0, "Ranks are not smoothed.", label_smoothing=label_smoothing)
        outputs = tf.cast(outputs, tf.float64 if outputs.dtype == tf.float64 else tf.float32)
        logits, labels = tf.reshape(outputs, tf.shape(labels)), tf.cast(labels, outputs.dtype)
        real = tf.math.is_finite(labels)
        labels = tf.where(real, labels, 0.0)
        if self.ranking_loss == "pointwise":
            logits = tf.where(real, logits, 0.0)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            losses, is_right = tf.where(real, losses, 0.0), real & ((logits > 0) == (labels > 0.5))
            count = tf.reduce_sum(tf.cast(real, outputs.dtype))
        else:
            logits = tf.where(real, logits, outputs.dtype.min / 2)
            totals = tf.reduce_sum(labels, axis=1, keepdims=True)
            parts = tf.math.divide_no_nan(labels, totals)
            losses = tf.nn.softmax_cross_entropy_with_logits(parts, logits)
            losses = tf.where(totals[:, 0] > 0, losses, 0.0)
            best = tf.gather(labels, tf.argmax(logits, axis=1), batch_dims=1)
            is_right = (totals[:, 0] > 0) & (best >= tf.reduce_max(labels, axis=1))
            count = tf.reduce_sum(tf.cast(totals > 0, outputs.dtype))
        loss = tf.reduce_sum(losses)
        return loss, loss, count, tf.reduce_sum(tf.cast(is_right, outputs.dtype))

    def predict(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[list[RankedPassage]]:
        """Ranks the passages of queries.

        Args:
            inputs: Queries with their passages, a tab before each passage.
            progress: Called with the number of passages done after each batch.

        Returns:
            The passages of each query, the best first; of equal scores in their order.

        Raises:
            UserError: An input has no passage, or a text is too long for a task that does not
                truncate.
        """
        return ranked_by(self.scores, inputs, progress)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of the longest pairs of inputs, before they are truncated.

        Args:
            texts: What `predict` takes, at least one.
        """
        rows = [_pairs_of(text) for text in texts]
        counts = iter(super().token_counts([pair for row in rows for pair in row]))
        return [max(itertools.islice(counts, len(row))) for row in rows]

    def rank(self, query: str, passages: Sequence[str]) -> list[RankedPassage]:
        """Ranks passages for a query.

        Args:
            query: The query.
            passages: Any number of passages.

        Returns:
            The passages with their scores, the best first; of equal scores in their order.

        Raises:
            UserError: A text has a tab, or is too long for a task that does not truncate.
        """
        return ranked_of(self.scores, query, passages)

    def scores(
        self, pairs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Computes the scores of pairs.

        Args:
            pairs: A query and a passage each, with a tab between them.
            progress: Called with the number of pairs done after each batch.

        Returns:
            float32 (pairs,).

        Raises:
            UserError: A pair is none, or too long for a task that does not truncate.
        """
        return self._computed(pairs, progress)[:, 0]

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`).

        "serving_default" gives the score of a passage for the query in the same row; "rank" orders
        several passages of the query in the same row, where an empty string is none.
        """
        del n_best  # all passages are ranked
        compute = compiled(self._logits, jit)
        texts = {"query": TEXTS, "passage": TEXTS}

        def score(query, passage):
            return {"score": self._activated(compute(self._ids(query, passage)))[:, 0]}

        def rank(query, passages):
            count = tf.shape(passages)[1]
            flat = tf.reshape(passages, [-1])
            ids = self._ids(tf.repeat(query, count), flat)
            logits = tf.reshape(compute(ids), tf.shape(passages))
            is_real = passages != ""
            order = tf.argsort(tf.where(is_real, -logits, np.inf), axis=1, stable=True)
            scores = tf.where(is_real, self._activated(logits), 0.0)
            return {
                "passages": tf.gather(passages, order, batch_dims=1),
                "scores": tf.gather(scores, order, batch_dims=1),
                "places": order,
            }

        def from_ids(token_ids):
            return {"score": self._activated(compute(token_ids))[:, 0]}

        name, spec, longest = self._encoding
        return {
            "serving_default": ServingFunction(score, texts, _split_examples),
            "rank": ServingFunction(
                rank,
                {"query": TEXTS, "passages": _PASSAGES},
                _several_examples,
                compared=_by_place,
            ),
            name: ServingFunction(
                from_ids,
                {name: spec},
                lambda examples: {name: self._encoded(tf.constant(examples))},
                longest=longest,
            ),
            "attention": attention_function(self.backbone, self._read_both, texts, _split_examples),
        }

    def _ids(self, queries, passages):
        room = self.max_length - self.frame
        both = (self.tokenizer.tokenize(texts) for texts in (queries, passages))
        ids = joined_ids(self.tokenizer, *both, room, self.truncate, self.ends_between)
        return framed(self.tokenizer, ids, self.with_start)

    def _read_both(self, queries, passages):
        ids = self._ids(queries, passages)
        return TokenView(self._inputs_of(ids), source=token_texts(self.tokenizer, ids))

    def _logits(self, token_ids):
        return tf.cast(self.backbone(self.model_inputs(token_ids)), tf.float32)

    def _activated(self, outputs):
        return tf.sigmoid(outputs) if self.activation == "sigmoid" else outputs


def ranked_by(
    scores: Callable[..., np.ndarray],
    inputs: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> list[list[RankedPassage]]:
    """Ranks the passages of queries by a function that scores pairs (see `RankTask.predict`)."""
    rows = [_pairs_of(text) for text in check_texts("inputs", inputs)]
    found = scores([pair for row in rows for pair in row], progress)
    ranked, begin = [], 0
    for row in rows:
        end = begin + len(row)
        passages = [pair.split(BETWEEN)[1] for pair in row]
        ranked.append(_ordered(passages, found[begin:end]))
        begin = end
    return ranked


def _pairs_of(text: str) -> list[str]:
    """A query, with a tab before each of its passages, as pairs."""
    query, *passages = text.split(BETWEEN)
    require(
        bool(passages),
        "An input is a query and its passages, with a tab before each passage.",
        text=shortened(text),
        tabs=0,
    )
    return [f"{query}{BETWEEN}{passage}" for passage in passages]


def ranked_of(
    scores: Callable[..., np.ndarray], query: str, passages: Sequence[str]
) -> list[RankedPassage]:
    """Ranks the passages of a query by a function that scores pairs (see `RankTask.rank`)."""
    passages = check_texts("passages", passages)
    for text in (query, *passages):
        require(BETWEEN not in text, "A query or passage has no tab.", text=shortened(text))
    return _ordered(passages, scores([f"{query}{BETWEEN}{passage}" for passage in passages]))


def _ordered(passages: Sequence[str], scores: np.ndarray) -> list[RankedPassage]:
    order = np.argsort(-scores, kind="stable").tolist()
    return [RankedPassage(passages[place], float(scores[place]), place) for place in order]


def _split_examples(examples: Sequence[str]) -> Mapping[str, list[str]]:
    for text in examples:
        require_pair(text)
    split = [text.split(BETWEEN) for text in examples]
    return {"query": [query for query, _ in split], "passage": [passage for _, passage in split]}


def _by_place(ranked: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Scores as the passages were given: almost equal ones may change places."""
    order = np.argsort(ranked["places"], axis=1)
    return {"scores": np.take_along_axis(ranked["scores"], order, axis=1)}


def _several_examples(examples: Sequence[str]) -> Mapping[str, Any]:
    """The passages of all examples for each of their queries."""
    split = _split_examples(examples)
    return {"query": split["query"], "passages": [split["passage"]] * len(examples)}
