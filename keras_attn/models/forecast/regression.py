"""The linear forecast by ridge regression, before anything is learned by gradients."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from keras_attn.models.forecast.forecaster import Forecaster
from keras_attn.models.forecast.scaled_window import read_window

_FOLDS = 5
_STRENGTHS = (*10.0 ** np.arange(-5, 2.5, 0.5), np.inf)
_LEAST_WINDOWS = 3  # for each fold
_MOST_FEATURES = 1_024


def fit_linear_forecast(
    model: Forecaster, inputs: Mapping[str, Any], labels: np.ndarray, distance: int = 1
) -> None:
    """Gives the linear part of a forecaster the weights of a ridge regression, and its spread.

    The quantiles begin with those of the errors in cross-validation. With too few windows without
    missing labels, or too long a context, a target keeps the weights it has.

    Args:
        model: An untrained forecaster.
        inputs: What it is called with, for windows in the order of their series.
        labels: Targets of the horizons, (windows, horizon, targets), NaN where one is missing.
        distance: Number of steps from a window to the next.

    References:
        Zeng et al., 2023, https://arxiv.org/abs/2205.13504, section 4: the linear forecast.
    """
    linear, spread = model.get_layer("linear"), model.get_layer("spread")
    kernel, quantiles = (np.array(layer.weights[0]) for layer in (linear, spread))
    if len(kernel) > _MOST_FEATURES:
        return
    inputs = {name: keras.ops.convert_to_tensor(x, "float32") for name, x in inputs.items()}
    window = read_window(inputs, model.targets, model.unknown)
    values, mean, deviation = (
        np.asarray(each, np.float64) for each in (window.of_targets, window.mean, window.deviation)
    )
    deviation = np.where(deviation > 0, deviation, np.nan)
    labels = (labels - mean) / deviation
    quantiles = quantiles.reshape(model.horizon, model.targets, -1)
    gap = -(-(model.context + model.horizon) // distance)
    for target in range(model.targets):
        whole = ~np.isnan(labels[..., target]).any(axis=1)
        fit = ridge_regression(values[whole, :, target], labels[whole, :, target], gap)
        if fit is not None:
            kernel[:, target], constant, errors = fit
            found = np.quantile(errors, model.quantiles, axis=0)  # (quantiles, horizon)
            found += constant - found[model.quantiles.index(0.5)]
            quantiles[:, target] = found.T
    linear.weights[0].assign(kernel)
    spread.weights[0].assign(quantiles.reshape(spread.weights[0].shape))


def ridge_regression(
    inputs: np.ndarray, labels: np.ndarray, gap: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Fits a linear map; its strength, and whether it has a constant, by cross-validation.

    Windows that follow each other share most of their steps. The folds are therefore blocks of
    windows, and the neighbors of a block are left out of its fit.

    Args:
        inputs: (windows, features).
        labels: (windows, outputs).
        gap: Number of neighbors on either side of a block that are left out.

    Returns:
        The map (features, outputs), its constant (outputs,), and the errors (windows, outputs) of
        the fits to other blocks; `None` with too few windows.

    References:
        Hoerl and Kennard, 1970, https://doi.org/10.1080/00401706.1970.10488634.
        Racine, 2000, https://doi.org/10.1016/S0304-4076(00)00030-0: blocks with gaps.
    """
    if len(inputs) < _LEAST_WINDOWS * _FOLDS:
        return None
    rows = np.arange(len(inputs))
    blocks = np.array_split(rows, _FOLDS)
    kept = [(rows < block[0] - gap) | (rows > block[-1] + gap) for block in blocks]
    if min(map(np.sum, kept)) < _LEAST_WINDOWS * _FOLDS:
        return None
    best, least, errors = (False, np.inf), np.inf, labels
    for has_constant in (False, True):
        fits = [_ridge(inputs[others], labels[others], has_constant) for others in kept]
        for strength in _STRENGTHS:
            maps = [fit(strength) for fit in fits]
            found = [
                inputs[block] @ weights + constant
                for block, (weights, constant) in zip(blocks, maps, strict=True)
            ]
            missed = labels - np.concatenate(found)
            if (error := np.abs(missed).mean()) < least:
                best, least, errors = (has_constant, strength), error, missed
    has_constant, strength = best
    return *_ridge(inputs, labels, has_constant)(strength), errors


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
