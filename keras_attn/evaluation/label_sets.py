"""F1, exact matches and thresholds of predictions with several labels each."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from keras_attn.evaluation.labels import CountsByLabel
from keras_attn.validation import require


@dataclasses.dataclass(frozen=True)
class LabelSetCounts(CountsByLabel):
    """How often each label was predicted where it is correct and where it is not.

    Attributes:
        labels: The labels, correct or predicted, in the order of their names.
        totals: How often each was rightly predicted, predicted, and correct, (3, labels).
        items: Number of items.
        exact: Number of items with all of their labels and no others.

    Examples:
        >>> counts = LabelSetCounts.of([["a", "b"], []], [["a"], []])
        >>> counts.labels, counts.totals.tolist(), counts.exact
        (['a', 'b'], [[1, 0], [1, 0], [1, 1]], 1)
    """

    labels: list[str]
    totals: np.ndarray
    items: int
    exact: int

    @classmethod
    def of(
        cls, references: Sequence[Collection[str]], predictions: Sequence[Collection[str]]
    ) -> "LabelSetCounts":
        """Counts sets of labels.

        Args:
            references: The correct labels of each item.
            predictions: The predicted labels of each.

        Raises:
            UserError: There are none, or the numbers differ.
        """
        require(
            len(references) == len(predictions) > 0,
            "There must be as many sets of predicted labels as of correct ones, and at least one.",
            predictions=len(predictions),
            references=len(references),
        )
        pairs = [(set(x), set(y)) for x, y in zip(references, predictions, strict=True)]
        labels = sorted(set().union(*(x | y for x, y in pairs)))
        number = {label: index for index, label in enumerate(labels)}
        totals = np.zeros((3, len(labels)), np.int64)
        for correct, predicted in pairs:
            for row, some in enumerate((correct & predicted, predicted, correct)):
                totals[row, [number[label] for label in some]] += 1
        return cls(labels, totals, len(pairs), sum(x == y for x, y in pairs))

    def _totals(self) -> np.ndarray:
        return self.totals

    @property
    def micro_f1(self) -> float:
        """F1 of all decisions together, in percent."""
        right, predicted, correct = self.totals.sum(axis=1).tolist()
        return 200 * right / max(predicted + correct, 1)

    @property
    def exact_match(self) -> float:
        """The percentage of items with all of their labels and no others."""
        return 100 * self.exact / self.items


LABEL_SETS: Mapping[str, Callable[[LabelSetCounts], float]] = {
    "micro_f1": lambda counts: counts.micro_f1,
    "macro_f1": lambda counts: counts.macro_f1,
    "weighted_f1": lambda counts: counts.weighted_f1,
    "exact_match": lambda counts: counts.exact_match,
}
"""The metrics of sets of labels by name."""


def best_thresholds(probabilities: np.ndarray, correct: np.ndarray) -> list[float]:
    """Chooses for each label the threshold of its probability with the largest F1.

    Args:
        probabilities: Floating (items, labels).
        correct: Whether an item has a label, boolean (items, labels).

    Returns:
        A threshold for each label, in the middle between two probabilities; 0.5 for a label that no
        item has. Of equal ones the largest.

    Examples:
        >>> best_thresholds(np.array([[0.9], [0.4], [0.2]]), np.array([[True], [True], [False]]))
        [0.3...]
    """
    return [
        _best_threshold(*column) if column[1].any() else 0.5
        for column in zip(np.asarray(probabilities, float).T, np.asarray(correct).T, strict=True)
    ]


def _best_threshold(probabilities: np.ndarray, correct: np.ndarray) -> float:
    order = np.argsort(-probabilities, kind="stable")
    found = probabilities[order]
    # With the threshold below each of them; equal ones are on one side.
    below = np.append(found[1:], 0.0)
    predicted = np.arange(1, len(found) + 1)
    f1 = 2 * np.cumsum(correct[order]) / (predicted + correct.sum())
    best = int(np.argmax(np.where(found > below, f1, -1)))
    return float((found[best] + below[best]) / 2)
