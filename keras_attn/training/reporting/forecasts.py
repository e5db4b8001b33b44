"""Forecasts of held-out steps, which the report of a run draws."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.files import write_text

FORECASTS_FILE = "forecasts.json"
_HORIZONS = 3  # of the past that is drawn


def drawn_forecast(task: Any, table: Any, windows: Any, row: int, series: int) -> dict[str, Any]:
    """A forecast with its past and what came, as plain values.

    Args:
        task: The task.
        table: The series.
        windows: Windows of it.
        row: The window.
        series: Its series.
    """
    rows = np.array([row])
    past, actual = windows.past(rows), windows.actual(rows)[0]
    future = windows.future(rows) if windows.known else None
    quantiles = task.predict(past, future)[0]
    shown = min(past.shape[1], _HORIZONS * windows.horizon)
    offset = sum(
        len(values) + windows.context + windows.horizon for values in table.values[:series]
    )
    begin = int(windows.firsts[row] - offset)  # of the horizon, in the series
    return {
        "series": table.ids[series],
        "times": [table.time(series, begin + step) for step in range(-shown, windows.horizon)],
        "levels": list(task.quantiles),
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


def write_forecasts(run: Path, forecasts: Sequence[Mapping[str, Any]]) -> None:
    """Writes forecasts.json into the folder of a run."""
    write_text(run / FORECASTS_FILE, json.dumps(forecasts, ensure_ascii=False, indent=1) + "\n")


def forecasts_figure(forecasts: Sequence[Mapping[str, Any]]) -> str:
    """Draws forecasts as SVG: the past and what came as lines, quantiles as bands.

    Args:
        forecasts: From `drawn_forecast`.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.figure import Figure

    shown = [(one, target) for one in forecasts for target in one["targets"]]
    figure = Figure(figsize=(10, 3.2 * len(shown)), layout="constrained")
    for place, (one, target) in enumerate(shown, 1):
        axes = figure.add_subplot(len(shown), 1, place)
        past, actual = (_numbers(target[name]) for name in ("past", "actual"))
        quantiles, levels = _numbers(target["quantiles"]), one["levels"]
        ahead = np.arange(len(past), len(past) + len(actual))
        axes.plot(
            np.arange(len(past) + len(actual)), [*past, *actual], color="#7f8b97", label="data"
        )
        for low in range(len(levels) // 2):
            high = len(levels) - 1 - low
            label = f"{levels[low]:g} to {levels[high]:g}" if low == 0 else None
            band = quantiles[:, low], quantiles[:, high]
            axes.fill_between(ahead, *band, alpha=0.16, color="#2f81f7", lw=0, label=label)
        axes.plot(ahead, quantiles[:, levels.index(0.5)], color="#2f81f7", label="median")
        ticks = np.unique(np.linspace(0, len(one["times"]) - 1, 7).astype(int))
        axes.set_xticks(ticks, [one["times"][tick] for tick in ticks])
        title = " ".join(filter(None, (one["series"], target["name"])))
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, loc="upper left", ncols=3)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True)
    return text.getvalue()[text.getvalue().index("<svg") :]  # without the XML head


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.7g}") for value in values]


def _numbers(values: Any) -> np.ndarray:
    return np.array(values, np.float64)
