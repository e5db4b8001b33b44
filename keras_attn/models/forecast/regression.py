"""Ridge regression of windows that follow each other, by cross-validation."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

_FOLDS = 5
_STRENGTHS = (*10.0 ** np.arange(-5, 2.5, 0.5), np.inf)
_LEAST_WINDOWS = 3  # for each fold


def ridge_regression(
    inputs: np.ndarray, labels: np.ndarray, gap: int, choices: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Fits a linear map; its features, its strength and its constant by cross-validation.

    Windows that follow each other share most of their steps. The folds are therefore blocks of
    windows, and the neighbors of a block are left out of its fit.

    Args:
        inputs: (windows, features).
        labels: (windows, outputs).
        gap: Number of neighbors on either side of a block that are left out.
        choices: Features to choose from, each bool (features,). A later one, or a constant, must
            have less error than what is chosen so far by more than the standard error of the
            difference.

    Returns:
        The map (features, outputs), its constant (outputs,), and the errors (windows, outputs) of
        the fits to other blocks; `None` with too few windows.

    References:
        Hoerl and Kennard, 1970, https://doi.org/10.1080/00401706.1970.10488634.
        Racine, 2000, https://doi.org/10.1016/S0304-4076(00)00030-0: blocks with gaps.
        Hastie et al., 2009, The Elements of Statistical Learning, section 7.10: standard errors.
    """
    if len(inputs) < _LEAST_WINDOWS * _FOLDS:
        return None
    rows = np.arange(len(inputs))
    blocks = np.array_split(rows, _FOLDS)
    kept = [(rows < block[0] - gap) | (rows > block[-1] + gap) for block in blocks]
    if min(map(np.sum, kept)) < _LEAST_WINDOWS * _FOLDS:
        return None
    best = errors = None
    different = {choice.tobytes(): choice for choice in choices}.values()
    for has_constant, choice in itertools.product((False, True), different):
        chosen = inputs[:, choice]
        fits = [_ridge(chosen[others], labels[others], has_constant) for others in kept]
        found = []
        for strength in _STRENGTHS:
            maps = [fit(strength) for fit in fits]
            predicted = [
                chosen[block] @ weights + constant
                for block, (weights, constant) in zip(blocks, maps, strict=True)
            ]
            found.append((labels - np.concatenate(predicted), strength))
        missed, strength = min(found, key=lambda each: np.abs(each[0]).mean())
        if errors is None or _is_less(missed, errors, blocks):
            best, errors = (choice, has_constant, strength), missed
    choice, has_constant, strength = best
    weights = np.zeros((inputs.shape[1], labels.shape[1]))
    weights[choice], constant = _ridge(inputs[:, choice], labels, has_constant)(strength)
    return weights, constant, errors


def _is_less(errors: np.ndarray, others: np.ndarray, blocks: list[np.ndarray]) -> bool:
    """Whether errors are less than others by more than the standard error of the difference."""
    gains = [np.abs(others[block]).mean() - np.abs(errors[block]).mean() for block in blocks]
    return bool(np.mean(gains) > np.std(gains, ddof=1) / math.sqrt(len(gains)))


def _ridge(inputs: np.ndarray, labels: np.ndarray, has_constant: bool) -> Callable:
    """The map and its constant for each strength, relative to the mean square of the inputs."""
    center, middle = (has_constant * each.mean(axis=0) for each in (inputs, labels))
    inputs, labels = inputs - center, labels - middle
    variances, axes = np.linalg.eigh(inputs.T @ inputs / len(inputs))
    projected = axes.T @ (inputs.T @ labels) / len(inputs)

    def of_strength(strength: float) -> tuple[np.ndarray, np.ndarray]:
        weights = axes @ (projected / (np.maximum(variances, 0) + strength)[:, None])
        return weights, middle - center @ weights

    return of_strength
