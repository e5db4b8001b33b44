"""Measures tasks and models on examples with known answers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import Examples, Pairs, ScoredPairs, group_references, plan_epoch
from keras_attn.evaluation import (
    CORRELATIONS,
    LABEL_SETS,
    LABELS,
    NUMBERS,
    RETRIEVAL,
    TAGGING,
    LabelCounts,
    LabelSetCounts,
    calibration_error,
    evaluate_texts,
    metric_signatures,
)
from keras_attn.evaluation.retrieval import ranks_and_rivals
from keras_attn.ops.cross_entropy import counts, losses_per_label
from keras_attn.tasks.hypothesis import Hypothesis, LabelSet
from keras_attn.tokenizers import Tokenizer, split_words
from keras_attn.validation import require, require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.embedding import EmbeddingTask
    from keras_attn.tasks.exported.generating import ExportedSeq2Seq
    from keras_attn.tasks.exported.labelling import (
        ExportedClassification,
        ExportedEmbedding,
        ExportedMultiLabelClassification,
        ExportedRegression,
        ExportedTokenClassification,
    )
    from keras_attn.tasks.labels import BaseClassificationTask
    from keras_attn.tasks.multi_label_classification import MultiLabelClassificationTask
    from keras_attn.tasks.regression import RegressionTask
    from keras_attn.tasks.seq2seq import Seq2SeqTask
    from keras_attn.tasks.token_classification import TokenClassificationTask

Answers = Mapping[Any, Hypothesis]
"""The best answer to each different input."""

_MEASURED_TOKENS = 4096
_NOTHING = Hypothesis("", -math.inf, -math.inf)


def best_answers(
    task: Any,
    inputs: Sequence[Any],
    beams: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Predicts the best answer to each different input.

    Args:
        task: A task with `predict_n_best`, exported or not.
        inputs: The inputs.
        beams: Width of the beam search; the task's own by default.
        progress: Called with the number of different inputs done after each batch.
    """
    different = list(dict.fromkeys(inputs))
    found = task.predict_n_best(different, 1, beams=beams, progress=progress)
    best = (hypotheses[0] if hypotheses else _NOTHING for hypotheses in found)
    return dict(zip(different, best, strict=True))


def measure(
    task: "Seq2SeqTask | ExportedSeq2Seq",
    pairs: Pairs,
    metrics: Sequence[str],
    beams: int | None = None,
    perplexity: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, float | str]:
    """Generates a text for each source and compares it with the references.

    Rows with an equal source count as one item with alternative references.

    Args:
        task: A task or its export.
        pairs: Sources and references.
        metrics: Names of text metrics (see `keras_attn.evaluation.metric_names`).
        beams: Width of the beam search; the task's own by default.
        perplexity: Whether to add the perplexity of all targets.
        progress: Called with the number of sources done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of distinct sources; and for BLEU
        and chrF sacrebleu's signature, as "bleu_signature".

    Examples:
        >>> task = Task.load("saved_models/g2p_en")
        >>> pairs = Pairs(["read", "read", "dog"], ["R EH D", "R IY D", "D AO G"])
        >>> measure(task, pairs, ["per", "wer"])
        {'items': 2, 'per': 0.0, 'wer': 0.0}
    """
    results = text_scores(pairs, best_answers(task, pairs.sources, beams, progress), metrics)
    if perplexity:
        results["perplexity"] = task.perplexity(pairs.sources, pairs.targets)
    return results


def text_scores(pairs: Pairs, answers: Answers, metrics: Sequence[str]) -> dict[str, float | str]:
    """Compares generated texts with the references; see `measure`."""
    sources, references = group_references(pairs)
    hypotheses = [answers[source].text for source in sources]
    results: dict[str, float | str] = {"items": len(sources)}
    results |= evaluate_texts(metrics, hypotheses, references)
    signatures = metric_signatures(metrics, references)
    return results | {f"{name}_signature": signature for name, signature in signatures.items()}


def measure_labels(
    task: "BaseClassificationTask | ExportedClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Classifies inputs and compares the labels with the correct ones.

    Every row counts, including repeated inputs.

    Args:
        task: A classification task or its export.
        pairs: Inputs and their labels.
        metrics: Names in `keras_attn.evaluation.LABELS`.
        progress: Called with the number of different inputs done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of inputs; "calibration_error", see
        `keras_attn.evaluation.calibration_error`; "labels", precision, recall and F1 of each label
        and how many items have it; and "confusion", how often each label was predicted (columns)
        for each correct one (rows), both in the order of "labels".

    Raises:
        UserError: A metric is unknown.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abc"), ["noun", "verb"])
        >>> found = measure_labels(task, Pairs(["cab", "bac"], ["noun", "verb"]), ["accuracy"])
        >>> sorted(found)
        ['accuracy', 'calibration_error', 'confusion', 'items', 'labels']
    """
    return label_scores(pairs, best_answers(task, pairs.sources, progress=progress), metrics)


def label_scores(pairs: Pairs, answers: Answers, metrics: Sequence[str]) -> dict[str, Any]:
    """Compares predicted labels with the correct ones; see `measure_labels`."""
    for name in metrics:
        require_one_of("metric", name, LABELS)
    found = [answers[source] for source in pairs.sources]
    counts = LabelCounts.of(pairs.targets, [best.text for best in found])
    correct = [best.text == label for best, label in zip(found, pairs.targets, strict=True)]
    probabilities = np.exp([best.log_probability for best in found])
    return {
        "items": len(pairs),
        **{name: LABELS[name](counts) for name in metrics},
        "calibration_error": calibration_error(correct, probabilities),
        "labels": counts.by_label(),
        "confusion": counts.matrix.tolist(),
    }


def measure_vectors(
    task: "EmbeddingTask | ExportedEmbedding",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Measures how well embeddings retrieve the partner of each text, or agree with scores.

    For each distinct source, all distinct targets are ranked by their similarity. A target equal to
    the source is ignored unless it is one of the source's own targets.

    Args:
        task: An embedding task or its export.
        pairs: Pairs of texts that belong together, or pairs with similarity scores.
        metrics: Names in `keras_attn.evaluation.RETRIEVAL` for pairs, in `CORRELATIONS` for pairs
            with scores.
        progress: Called with the number of texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of distinct sources, or of pairs with
        scores.

    Raises:
        UserError: A metric is unknown for such pairs.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
        >>> pairs = Pairs(["a cat sat", "a dog ran"], ["the cat sits", "the dog runs"])
        >>> measure_vectors(task, pairs, ["mrr", "recall_at_1"])
        {'items': 2, 'mrr': ..., 'recall_at_1': ...}
    """
    return vector_scores(pairs, vectors_of(task, pairs, progress), metrics)


def measure_label_sets(
    task: "MultiLabelClassificationTask | ExportedMultiLabelClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Predicts the labels of texts and compares them with the correct ones.

    Every row counts, including repeated texts.

    Args:
        task: A task of several labels a text, or its export.
        pairs: Texts, and a tuple of labels for each.
        metrics: Names in `keras_attn.evaluation.LABEL_SETS`.
        progress: Called with the number of different texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of texts; and "labels", precision,
        recall and F1 of each label and how many texts have it.

    Raises:
        UserError: A metric is unknown.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = MultiLabelClassificationTask(model, CharacterTokenizer("abc"), ["good", "long"])
        >>> pairs = Pairs(["cab", "abba"], [("good",), ()])
        >>> measure_label_sets(task, pairs, ["micro_f1"])
        {'items': 2, 'micro_f1': ..., 'labels': {...}}
    """
    return label_set_scores(pairs, label_sets_of(task, pairs, progress), metrics)


def label_sets_of(
    task: "MultiLabelClassificationTask | ExportedMultiLabelClassification",
    pairs: Pairs,
    progress: Callable[[int], None] | None = None,
) -> dict[str, LabelSet]:
    """Predicts the labels of each different text."""
    texts = list(dict.fromkeys(pairs.sources))
    return dict(zip(texts, task.label_sets(texts, progress), strict=True))


def label_set_scores(
    pairs: Pairs, answers: Mapping[str, LabelSet], metrics: Sequence[str]
) -> dict[str, Any]:
    """Compares sets of labels with the correct ones; see `measure_label_sets`."""
    for name in metrics:
        require_one_of("metric", name, LABEL_SETS)
    counts = LabelSetCounts.of(pairs.targets, [answers[text].labels for text in pairs.sources])
    values = {name: LABEL_SETS[name](counts) for name in metrics}
    return {"items": len(pairs)} | values | {"labels": counts.by_label()}


def measure_numbers(
    task: "RegressionTask | ExportedRegression",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Predicts numbers of texts and compares them with the correct ones.

    Every row counts, including repeated texts.

    Args:
        task: A regression task or its export.
        pairs: Texts, and a tuple of numbers for each.
        metrics: Names in `keras_attn.evaluation.NUMBERS`.
        progress: Called with the number of different texts done after each batch.

    Returns:
        Each metric's value by its name, of several numbers a text the mean; and "items", the number
        of texts.

    Raises:
        UserError: A metric is unknown, or a text does not have as many numbers as the task.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=1)
        >>> task = RegressionTask(model, CharacterTokenizer("abc"), ["price"], [40.0], [8.0])
        >>> pairs = Pairs(["cab", "abba"], [(40.5,), (38.0,)])
        >>> measure_numbers(task, pairs, ["mae"])
        {'items': 2, 'mae': ...}
    """
    return number_scores(pairs, numbers_of(task, pairs, progress), metrics)


def numbers_of(
    task: "RegressionTask | ExportedRegression",
    pairs: Pairs,
    progress: Callable[[int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Predicts the numbers of each different text."""
    texts = list(dict.fromkeys(pairs.sources))
    found = task.predict(texts, progress).reshape(len(texts), -1)
    return dict(zip(texts, found, strict=True))


def number_scores(
    pairs: Pairs, answers: Mapping[str, np.ndarray], metrics: Sequence[str]
) -> dict[str, float]:
    """Compares numbers with the correct ones; see `measure_numbers`."""
    for name in metrics:
        require_one_of("metric", name, NUMBERS)
    found = np.array([answers[text] for text in pairs.sources], float)
    expected = np.array(pairs.targets, float)
    require(
        found.shape == expected.shape,
        f"{pairs.name} must have as many numbers a text as the task.",
        numbers=expected.shape[1:],
        task=found.shape[1:],
    )
    columns = list(zip(found.T, expected.T, strict=True))
    values = {name: float(np.mean([NUMBERS[name](*x) for x in columns])) for name in metrics}
    return {"items": len(pairs)} | values


class Vectors(NamedTuple):
    """The vectors of pairs.

    Attributes:
        sources: Those of the sources; of each different one unless the pairs have scores.
        targets: Those of the targets.
    """

    sources: np.ndarray
    targets: np.ndarray

    def cosines(self) -> np.ndarray:
        """The cosine of each source and its target, (pairs,)."""
        lengths = np.linalg.norm(self.sources, axis=1) * np.linalg.norm(self.targets, axis=1)
        return np.sum(self.sources * self.targets, axis=1) / np.maximum(lengths, 1e-12)


def vectors_of(
    task: "EmbeddingTask | ExportedEmbedding",
    pairs: Pairs,
    progress: Callable[[int], None] | None = None,
) -> Vectors:
    """Embeds both sides of pairs."""
    sides = [pairs.sources, pairs.targets]
    if not isinstance(pairs, ScoredPairs):
        sides = [list(dict.fromkeys(texts)) for texts in sides]
    return Vectors(*(task.predict(texts, progress) for texts in sides))


def vector_scores(pairs: Pairs, vectors: Vectors, metrics: Sequence[str]) -> dict[str, float]:
    """Measures vectors; see `measure_vectors`."""
    known = CORRELATIONS if isinstance(pairs, ScoredPairs) else RETRIEVAL
    for name in metrics:
        require_one_of("metric", name, known)
    if isinstance(pairs, ScoredPairs):
        cosines = vectors.cosines()
        values = {name: CORRELATIONS[name](cosines, pairs.scores) for name in metrics}
        return {"items": len(pairs)} | values
    ranks, _ = partners_found(pairs, vectors)
    return {"items": len(ranks)} | {name: RETRIEVAL[name](ranks) for name in metrics}


def partners_found(pairs: Pairs, vectors: Vectors) -> tuple[np.ndarray, list[str]]:
    """Compares the partners of the different sources with all other targets.

    Returns:
        For each source the rank of its nearest partner, int64 (sources,), and the nearest target
        that is no partner.
    """
    sources, references = group_references(pairs)
    targets = list(dict.fromkeys(pairs.targets))
    number = {text: row for row, text in enumerate(targets)}
    partners = [[number[text] for text in texts] for texts in references]
    ignored = [[number[text]] if text in number else [] for text in sources]
    ranks, rivals = ranks_and_rivals(vectors.sources, vectors.targets, partners, ignored)
    return ranks, [targets[rival] for rival in rivals]


def measure_tags(
    task: "TokenClassificationTask | ExportedTokenClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Tags the words of texts and compares the tags with the correct ones.

    Every row counts, including repeated texts.

    Args:
        task: A token classification task or its export.
        pairs: Texts, and the tags of their words.
        metrics: Names in `keras_attn.evaluation.TAGGING`.
        progress: Called with the number of different texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of texts.

    Raises:
        UserError: A metric is unknown, or a text does not have as many tags as words.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyzAR")
        >>> model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=2)
        >>> task = TokenClassificationTask(model, tokenizer, ["O", "NAME"])
        >>> pairs = Pairs(["Anna lives in Rome"], ["NAME O O NAME"])
        >>> measure_tags(task, pairs, ["tag_accuracy"])
        {'items': 1, 'tag_accuracy': ...}
    """
    return tag_scores(pairs, best_answers(task, pairs.sources, progress=progress), metrics)


def tag_scores(pairs: Pairs, answers: Answers, metrics: Sequence[str]) -> dict[str, float]:
    """Compares predicted tags with the correct ones; see `measure_tags`."""
    for name in metrics:
        require_one_of("metric", name, TAGGING)
    hypotheses = [split_words(answers[text].text) for text in pairs.sources]
    references = list(map(split_words, pairs.targets))
    return {"items": len(pairs)} | {name: TAGGING[name](hypotheses, references) for name in metrics}


@dataclass(frozen=True)
class TokenLosses:
    """Losses of the labels of texts, one entry a text.

    Attributes:
        nll: Sum of the negative log-likelihood of a text's labels, (texts,).
        tokens: Number of its labels, (texts,).
        correct: Number of those that are the most probable ones, (texts,).
        expected: Its labels as text; empty strings if they were not asked for.
        predicted: The most probable ones as text.
    """

    nll: np.ndarray
    tokens: np.ndarray
    correct: np.ndarray
    expected: list[str]
    predicted: list[str]

    @property
    def perplexity(self) -> float:
        """Perplexity of all labels."""
        return math.exp(min(self.nll.sum() / max(self.tokens.sum(), 1), 700))

    @property
    def accuracy(self) -> float:
        """Percentage of the labels that are the most probable ones."""
        return 100 * float(self.correct.sum() / max(self.tokens.sum(), 1))


def token_losses(
    model: keras.Model, examples: Examples, texts: int, tokenizer: Tokenizer | None = None
) -> TokenLosses:
    """Measures a model on the labels of each text.

    Args:
        model: A model from the inputs of the examples to logits.
        examples: Tokenized examples, one or more of each text; label 0 is ignored.
        texts: Number of the texts.
        tokenizer: Tokenizer of the labels, to write them as text.
    """
    sums = np.zeros((texts, 3))
    words: list[list[list[str]]] = [[[] for _ in range(texts)] for _ in range(2)]
    for rows, labels, values, best in _label_losses(model, examples):
        numbers = examples.indices[rows]
        np.add.at(sums, numbers, values)
        if tokenizer is None:
            continue
        names = tokenizer.tokens_of(tf.constant(np.stack([labels, best]))).numpy()
        for row, number in enumerate(numbers):
            for side, tokens in zip(words, names[:, row], strict=True):
                real = tokens[labels[row] != 0]
                side[number] += [token.decode(errors="replace") for token in real]
    expected, predicted = ([" ".join(tokens) for tokens in side] for side in words)
    nll, labeled, correct = sums.T
    return TokenLosses(nll, labeled, correct, expected, predicted)


def token_scores(model: keras.Model, examples: Examples) -> dict[str, float]:
    """Measures a model on the labels of examples.

    Args:
        model: A model from the inputs of the examples to logits.
        examples: Tokenized examples; label 0 is ignored.

    Returns:
        The "perplexity" of the labels, and the "accuracy" of the most probable ones, in percent.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> token_scores(model, TextExamples.from_texts(["cab", "abba"], tokenizer))
        {'perplexity': ..., 'accuracy': ...}
    """
    losses = token_losses(model, examples, int(examples.indices.max()) + 1)
    return {"perplexity": losses.perplexity, "accuracy": losses.accuracy}


def _label_losses(
    model: keras.Model, examples: Examples
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yields rows of examples, their labels, the sums of each row, and the most probable ids."""

    def measured(inputs: Any, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        logits = model(inputs)
        _, nll, correct = losses_per_label(labels, logits)
        sums = [
            tf.reduce_sum(one, axis=1) for one in (nll, tf.cast(counts(labels), nll.dtype), correct)
        ]
        return tf.stack(sums, axis=1), tf.argmax(logits, axis=-1, output_type=tf.int32)

    graph = tf.function(measured, input_signature=examples.signature, autograph=False)
    for rows in plan_epoch(examples, max(_MEASURED_TOKENS, int(examples.lengths.max())), seed=None):
        inputs, labels = examples.assemble(rows)
        values, best = graph(inputs, labels)
        yield np.asarray(rows), labels, values.numpy(), best.numpy()
