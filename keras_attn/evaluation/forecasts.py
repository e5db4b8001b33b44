"""Metrics of forecasts of series, and the seasonal naive forecast to compare them with."""

from collections.abc import Sequence

import numpy as np

FORECAST_METRICS = ("mase", "mae", "wql", "coverage")
"""Names of the metrics of forecasts; less is better for all but the coverage."""


def seasonal_naive(past: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """Repeats the last season of a history; a missing value is that of the season before.

    Where no season has a value of a step, the one that was observed before it is repeated.

    Args:
        past: float (windows, steps, targets), NaN where a value is missing.
        horizon: Number of steps to forecast.
        season: Number of steps of a season, 1 to repeat the last value.

    Returns:
        float (windows, horizon, targets); NaN without any value in the history.

    Examples:
        >>> seasonal_naive(np.array([[[1.0], [2.0], [3.0]]]), horizon=3, season=2)[0, :, 0].tolist()
        [2.0, 3.0, 2.0]

    Reference:
        Hyndman and Athanasopoulos, 2021, Forecasting: Principles and Practice,
        https://otexts.com/fpp3/simple-methods.html
    """
    filled = np.array(past, np.float64)
    season = min(season, filled.shape[1])
    for distance in (season, 1):
        for step in range(distance, filled.shape[1]):
            missing = np.isnan(filled[:, step])
            filled[:, step] = np.where(missing, filled[:, step - distance], filled[:, step])
    return filled[:, filled.shape[1] - season + np.arange(horizon) % season]


def seasonal_errors(history: np.ndarray, season: int) -> np.ndarray:
    """Mean absolute difference of the values of a history that are a season apart.

    Args:
        history: float (steps, targets), NaN where a value is missing.
        season: Number of steps of a season.

    Returns:
        float (targets,); NaN where no two values are a season apart.
    """
    differences = np.abs(history[season:] - history[: max(len(history) - season, 0)])
    count = (~np.isnan(differences)).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.nansum(differences, axis=0) / np.where(count, count, np.nan)


def pinball(actual: np.ndarray, quantiles: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Pinball loss of quantiles, twice: at the level 0.5 it is the absolute error.

    Args:
        actual: float (...,).
        quantiles: float (..., levels).
        levels: The levels.

    Returns:
        float (..., levels).

    Reference:
        Koenker and Bassett, 1978, https://doi.org/10.2307/1913643, equation 2.1.
    """
    errors = actual[..., None] - quantiles
    return 2 * np.maximum(np.asarray(levels) * errors, (np.asarray(levels) - 1) * errors)


def measure_forecasts(
    actual: np.ndarray, quantiles: np.ndarray, levels: Sequence[float], scales: np.ndarray
) -> dict[str, float]:
    """Measures forecasts.

    Args:
        actual: What came, float (windows, horizon, targets), NaN where it is not known.
        quantiles: The forecasts, float (windows, horizon, targets, levels).
        levels: Levels of the quantiles, with 0.5 among them.
        scales: Mean absolute error of the seasonal naive forecast in the history of each window,
            one season ahead, float (windows, targets).

    Returns:
        `mase`, the mean absolute error of the median, each divided by its scale; `mae`, without
        that; `wql`, the weighted quantile loss: the sum of twice the pinball loss, averaged over
        the levels, divided by the sum of the absolute values, in percent; and `coverage`, the
        fraction of the values between the outer quantiles, in percent. `mase` is left out if no
        scale is above 0.

    References:
        Hyndman and Koehler, 2006, https://doi.org/10.1016/j.ijforecast.2006.03.001 (MASE).
        Gasthaus et al., 2019, https://proceedings.mlr.press/v89/gasthaus19a.html (weighted quantile
        loss).

    Examples:
        >>> actual, quantiles = np.array([[[4.0]]]), np.array([[[[2.0, 3.0, 5.0]]]])
        >>> measure_forecasts(actual, quantiles, [0.1, 0.5, 0.9], np.array([[2.0]]))["mase"]
        0.5
    """
    known = ~np.isnan(actual)
    errors = np.abs(actual - quantiles[..., list(levels).index(0.5)])
    scaled = errors / np.where(scales > 0, scales, np.nan)[:, None]
    loss = pinball(actual, quantiles, levels).mean(axis=-1)
    inside = (quantiles[..., 0] <= actual) & (actual <= quantiles[..., -1])
    found = {
        "mae": float(errors[known].mean()),
        "wql": 100 * float(loss[known].sum() / max(np.abs(actual[known]).sum(), 1e-12)),
        "coverage": 100 * float(inside[known].mean()),
    }
    if np.isnan(scaled).all():
        return found
    return {"mase": float(np.nanmean(scaled))} | found
