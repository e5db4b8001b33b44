"""Accuracy, F1, confusion and calibration of predicted labels."""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_attn.validation import require

_BINS = 15


class CountsByLabel(abc.ABC):
    """Base class of counts of labels, which measures each label for itself.

    Attributes:
        labels: The labels.
    """

    labels: list[str]

    @abc.abstractmethod
    def _totals(self) -> np.ndarray:
        """How often each label was rightly predicted, predicted, and correct, (3, labels)."""

    def by_label(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of each label in percent, and how often it is correct.

        A label that is never predicted has precision 0, one that is never correct recall 0.
        """
        right, predicted, correct = self._totals()
        columns = {
            "precision": 100 * right / np.maximum(predicted, 1),
            "recall": 100 * right / np.maximum(correct, 1),
            "f1": 200 * right / np.maximum(predicted + correct, 1),
            "items": correct,
        }
        return {
            label: {name: column[index].item() for name, column in columns.items()}
            for index, label in enumerate(self.labels)
        }

    @property
    def macro_f1(self) -> float:
        """The mean of the labels' F1, in percent."""
        return float(np.mean([row["f1"] for row in self.by_label().values()]))

    @property
    def weighted_f1(self) -> float:
        """The mean of the items' labels' F1, in percent."""
        rows = self.by_label().values()
        return float(
            np.average([row["f1"] for row in rows], weights=[row["items"] for row in rows])
        )


@dataclasses.dataclass(frozen=True)
class LabelCounts(CountsByLabel):
    """How often each label was predicted for each correct one.

    Attributes:
        labels: The labels, correct or predicted, in the order of their names.
        matrix: Counts (correct label, predicted label).

    Examples:
        >>> counts = LabelCounts.of(["a", "b", "b"], ["a", "b", "a"])
        >>> counts.labels, counts.matrix.tolist()
        (['a', 'b'], [[1, 0], [1, 1]])
    """

    labels: list[str]
    matrix: np.ndarray

    @classmethod
    def of(cls, references: Sequence[str], predictions: Sequence[str]) -> "LabelCounts":
        """Counts pairs of a correct and a predicted label.

        Args:
            references: The correct labels.
            predictions: The predicted labels, one for each.

        Raises:
            UserError: There are none, or the numbers differ.
        """
        require(
            len(references) == len(predictions) > 0,
            "There must be as many predicted labels as correct ones, and at least one.",
            predictions=len(predictions),
            references=len(references),
        )
        labels = sorted({*references, *predictions})
        number = {label: index for index, label in enumerate(labels)}
        matrix = np.zeros((len(labels), len(labels)), np.int64)
        rows, columns = ([number[label] for label in some] for some in (references, predictions))
        np.add.at(matrix, (rows, columns), 1)
        return cls(labels, matrix)

    def _totals(self) -> np.ndarray:
        matrix = self.matrix
        return np.stack([np.diag(matrix), matrix.sum(axis=0), matrix.sum(axis=1)])

    @property
    def accuracy(self) -> float:
        """The percentage of items with the correct label."""
        items = int(self.matrix.sum())
        # As `exact_match` of texts is computed, to the bit.
        return 100.0 - 100.0 * (items - int(np.trace(self.matrix))) / items


LABELS: Mapping[str, Callable[[LabelCounts], float]] = {
    "accuracy": lambda counts: counts.accuracy,
    "macro_f1": lambda counts: counts.macro_f1,
    "weighted_f1": lambda counts: counts.weighted_f1,
    "exact_match": lambda counts: counts.accuracy,
}
"""The metrics of labels by name; `exact_match` is another name of `accuracy`."""


def calibration_error(
    correct: Sequence[bool], probabilities: Sequence[float] | np.ndarray
) -> float:
    """Computes by how much probabilities differ from the accuracy, the expected calibration error.

    Predictions are put into 15 bins of equal width by their probability; the error is the mean
    difference of accuracy and mean probability of a bin, weighted by its size.

    Args:
        correct: Whether each prediction is correct.
        probabilities: The probability that each was given.

    Returns:
        The error in percent: 0 if predictions of probability 0.8 are correct in 80% of the cases.

    Examples:
        >>> calibration_error([True, True, False, False], [0.75, 0.75, 0.75, 0.75])
        25.0

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599), equation 3.
    """
    _, given, right = _sums_of_bins(correct, probabilities)
    return float(100 * np.abs(right - given).sum() / len(correct))


def calibration_bins(
    correct: Sequence[bool], probabilities: Sequence[float] | np.ndarray
) -> list[tuple[float, float, int]]:
    """Compares probabilities with the accuracy, for the bins of `calibration_error`.

    Args:
        correct: Whether each prediction is correct.
        probabilities: The probability that each was given.

    Returns:
        Mean probability, accuracy and number of predictions of each bin that has some.
    """
    sums = zip(*_sums_of_bins(correct, probabilities), strict=True)
    return [(given / count, right / count, int(count)) for count, given, right in sums if count]


def _sums_of_bins(
    correct: Sequence[bool], probabilities: Sequence[float] | np.ndarray
) -> list[np.ndarray]:
    """Numbers of predictions, sums of their probabilities, and numbers of correct ones by bin."""
    right, given = np.asarray(correct, float), np.asarray(probabilities, float)
    bins = np.minimum((given * _BINS).astype(int), _BINS - 1)
    return [np.bincount(bins, values, _BINS) for values in (np.ones_like(given), given, right)]
