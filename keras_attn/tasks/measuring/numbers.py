"""Measures predicted numbers by the correct ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_attn.data import Pairs
from keras_attn.evaluation import NUMBERS
from keras_attn.validation import require, require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.exported.labelling import ExportedRegression
    from keras_attn.tasks.regression import RegressionTask


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
