"""The season of series: after how many steps their values repeat."""

from collections.abc import Sequence

import numpy as np

_LEAST_LENGTH = 4  # seasons
_MOST = 1_000  # steps
_CLEAR = 0.8
_NEAR = 0.05


def find_season(series: Sequence[np.ndarray]) -> int:
    """Finds after how many steps series repeat.

    The mean difference of values that are so many steps apart is divided by its mean over all
    shorter distances. The season is where this is least, the shortest of about equal ones; there is
    none if it is not clearly below 1, as for noise, random walks and trends.

    Args:
        series: Values of each series, float (steps,), NaN where one is missing.

    Returns:
        The season, or 1 if there is none.

    Examples:
        >>> find_season([np.sin(np.arange(60) * 2 * np.pi / 12)])
        12
        >>> find_season([np.arange(60.0)])
        1

    Reference:
        de Cheveigné and Kawahara, 2002, YIN, https://doi.org/10.1121/1.1458024, section II.C, with
        absolute differences.
    """
    longest = max((len(values) for values in series), default=0) // _LEAST_LENGTH
    longest = min(longest, _MOST)
    sums, counts = np.zeros(longest + 1), np.zeros(longest + 1)
    for values in series:
        flat = _without_trend(np.asarray(values, np.float64))
        for lag in range(1, min(longest, len(flat) // _LEAST_LENGTH) + 1):
            differences = np.abs(flat[lag:] - flat[:-lag])
            known = ~np.isnan(differences)
            sums[lag] += differences[known].sum()
            counts[lag] += known.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sums / counts)[1:]
        ratios = means / (np.nancumsum(means) / np.arange(1, longest + 1))
    ratios = np.where(np.isfinite(ratios), ratios, np.inf)
    inner = ratios[1:-1]
    dips = np.flatnonzero((inner <= ratios[:-2]) & (inner < ratios[2:])) + 1
    if not dips.size or ratios[dips].min() > _CLEAR:
        return 1
    near = ratios[dips] <= ratios[dips].min() + _NEAR
    return int(dips[near][0]) + 1


def _without_trend(values: np.ndarray) -> np.ndarray:
    """A series without its linear trend, on the scale of what is left; NaN if that is constant."""
    steps, known = np.arange(len(values)), ~np.isnan(values)
    if known.sum() < 2:
        return np.full(len(values), np.nan)
    flat = values - np.polyval(np.polyfit(steps[known], values[known], 1), steps)
    scale = np.abs(flat[known]).mean()
    return (
        flat / scale if scale > 1e-9 * np.abs(values[known]).max() else np.full_like(flat, np.nan)
    )
