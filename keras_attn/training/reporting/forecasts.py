"""Forecasts of held-out steps as plain values, which the report of a run draws."""

from typing import Any

import numpy as np

_HORIZONS = 3  # of the past that is drawn


def drawn_forecast(
    table: Any, windows: Any, row: int, series: int, levels: list[float], quantiles: np.ndarray
) -> dict[str, Any]:
    """A forecast with its past and what came, as plain values.

    Args:
        table: The series.
        windows: Windows of it.
        row: The window.
        series: Its series.
        levels: The levels of the quantiles.
        quantiles: What was forecast, (horizon, targets, levels).
    """
    rows = np.array([row])
    past, actual = windows.past(rows), windows.actual(rows)[0]
    shown = min(past.shape[1], _HORIZONS * windows.horizon)
    begin = int(windows.select(rows).begins(table, np.array([series]))[0])
    return {
        "series": table.ids[series],
        "times": [table.time(series, begin + step) for step in range(-shown, windows.horizon)],
        "levels": levels,
        "targets": [
            {
                "name": name,
                "past": _plain(past[0, -shown:, place]),
                "actual": _plain(actual[:, place]),
                "quantiles": [_plain(step) for step in quantiles[:, place]],
            }
            for place, name in enumerate(table.columns["target"])
        ],
    }


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.7g}") for value in values]
