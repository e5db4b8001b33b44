"""Measures labels, sets of labels, and tags of words by the correct ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_attn.data import Pairs
from keras_attn.evaluation import (
    LABEL_SETS,
    LABELS,
    TAGGING,
    LabelCounts,
    LabelSetCounts,
    calibration_error,
)
from keras_attn.tasks.hypothesis import LabelSet
from keras_attn.tasks.measuring.answers import Answers, best_answers
from keras_attn.tokenizers import split_words
from keras_attn.validation import require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.exported.labelling import (
        ExportedClassification,
        ExportedMultiLabelClassification,
        ExportedTokenClassification,
    )
    from keras_attn.tasks.labels import BaseClassificationTask
    from keras_attn.tasks.multi_label_classification import MultiLabelClassificationTask
    from keras_attn.tasks.token_classification import TokenClassificationTask


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


def measure_tags(
    task: "TokenClassificationTask | ExportedTokenClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Tags the words of texts and compares the tags with the correct ones.

    Every row counts, including repeated texts; words with the tag `pairs.untagged` do not.

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
    if pairs.untagged is not None:
        hypotheses = [
            judged_tags(tags, right, pairs.untagged)
            for tags, right in zip(hypotheses, references, strict=True)
        ]
        references = [judged_tags(right, right, pairs.untagged) for right in references]
    return {"items": len(pairs)} | {name: TAGGING[name](hypotheses, references) for name in metrics}


def judged_tags(tags: Sequence[str], references: Sequence[str], untagged: str | None) -> list[str]:
    """The tags of the words of a text that have one.

    Args:
        tags: Tags of the words.
        references: Correct tags of the words.
        untagged: Correct tag of words that have none.
    """
    if len(tags) != len(references):
        return list(tags)
    return [tag for tag, right in zip(tags, references, strict=True) if right != untagged]
