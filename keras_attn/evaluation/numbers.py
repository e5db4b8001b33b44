"""Errors of predicted numbers, and their correlation with the correct ones."""

from collections.abc import Callable, Mapping

import numpy as np

from keras_attn.evaluation.correlation import pearson, spearman


def mean_absolute_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the mean absolute difference.

    Args:
        found: Numbers, (items,).
        expected: The correct ones, (items,).

    Examples:
        >>> mean_absolute_error(np.array([1.0, 4.0]), np.array([2.0, 2.0]))
        1.5
    """
    return float(np.mean(np.abs(found - expected)))


def root_mean_squared_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the square root of the mean squared difference.

    Args:
        found: Numbers, (items,).
        expected: The correct ones, (items,).

    Examples:
        >>> root_mean_squared_error(np.array([1.0, 9.0]), np.array([2.0, 2.0]))
        5.0
    """
    return float(np.sqrt(np.mean(np.square(found - expected))))


def explained_variance(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns R², the fraction of the variance that is explained.

    Args:
        found: Numbers, (items,).
        expected: The correct ones, (items,).

    Returns:
        At most 1; 0 for the mean of the correct numbers as the answer to everything, and where the
        correct numbers do not vary.

    Examples:
        >>> explained_variance(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 6.0]))
        0.35...
    """
    variance = np.sum(np.square(expected - np.mean(expected)))
    return float(1 - np.sum(np.square(found - expected)) / variance) if variance > 0 else 0.0


def _of_two(correlation: Callable[..., float]) -> Callable[[np.ndarray, np.ndarray], float]:
    """A correlation times 100, 0 for a single number."""
    return lambda found, expected: 100 * correlation(found, expected) if len(found) > 1 else 0.0


NUMBERS: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "mae": mean_absolute_error,
    "rmse": root_mean_squared_error,
    "r2": lambda found, expected: 100 * explained_variance(found, expected),
    "pearson": _of_two(pearson),
    "spearman": _of_two(spearman),
}
"""The metrics of numbers by name: two errors in the unit of the numbers, and R² and two
correlations times 100, like other metrics."""

LOWER_IS_BETTER = ("mae", "rmse")
"""Those of `NUMBERS` that are errors."""
