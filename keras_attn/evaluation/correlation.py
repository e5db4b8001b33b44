"""Correlation of two lists of numbers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_attn.validation import require

Numbers = Sequence[float] | np.ndarray


def pearson(found: Numbers, expected: Numbers) -> float:
    """Pearson's correlation of two lists of numbers.

    Args:
        found: Numbers.
        expected: As many numbers.

    Returns:
        From -1 to 1; 0 where one of the lists does not vary.

    Raises:
        UserError: The lists differ in length, or have fewer than two numbers.

    Examples:
        >>> round(pearson([1, 2, 3], [2, 4, 6]), 3)
        1.0
    """
    x, y = np.asarray(found, "float64"), np.asarray(expected, "float64")
    require(
        x.shape == y.shape and x.size > 1,
        "A correlation needs two lists of equal length with at least two numbers.",
        lengths=(x.size, y.size),
    )
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt(np.sum(x**2) * np.sum(y**2))
    return float(np.sum(x * y) / scale) if scale > 0 else 0.0


def spearman(found: Numbers, expected: Numbers) -> float:
    """Spearman's correlation: Pearson's correlation of the ranks; equal numbers have equal ranks.

    Args:
        found: Numbers.
        expected: As many numbers.

    Returns:
        From -1 to 1; 0 where one of the lists does not vary.

    Raises:
        UserError: The lists differ in length, or have fewer than two numbers.

    Examples:
        >>> round(spearman([1, 2, 3], [1, 4, 9]), 3)
        1.0
    """
    return pearson(ranks_of(found), ranks_of(expected))


CORRELATIONS: Mapping[str, Callable[[Numbers, Numbers], float]] = {
    "spearman": lambda found, expected: 100.0 * spearman(found, expected),
    "pearson": lambda found, expected: 100.0 * pearson(found, expected),
}
"""The correlations times 100, like other metrics."""


def ranks_of(numbers: Numbers) -> np.ndarray:
    """Ranks of numbers from 1; equal numbers have the mean of their ranks."""
    _, places, counts = np.unique(np.asarray(numbers), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
