"""Forecasts of the series of a table, with their times."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn.data.series.series import SeriesTable
from keras_attn.tasks.histories import Histories
from keras_attn.validation import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of several series.

    Attributes:
        ids: What each series is called; "" for the only one of a table.
        times: The times of each series' horizon.
        targets: Names of the targets.
        levels: Levels of the quantiles.
        quantiles: float64 (series, horizon, targets, levels).

    Examples:
        >>> quantiles = np.array([[[[4.0, 5.0, 7.0]]]])  # a series, a step, a target, three levels
        >>> found = Forecasts([""], [["2024-03"]], ["sales"], [0.1, 0.5, 0.9], quantiles)
        >>> print(found.csv())
        time,series,target,q0.1,q0.5,q0.9
        2024-03,,sales,4,5,7
        <BLANKLINE>
    """

    ids: Sequence[str]
    times: Sequence[Sequence[str]]
    targets: Sequence[str]
    levels: Sequence[float]
    quantiles: np.ndarray

    def rows(self) -> list[dict[str, Any]]:
        """A row for each time and target: `time`, `series`, `target`, and `q0.5` and the like."""
        names = [f"q{level:g}" for level in self.levels]
        return [
            {"time": time, "series": self.ids[one], "target": target}
            | dict(zip(names, self.quantiles[one, step, place].tolist(), strict=True))
            for one, times in enumerate(self.times)
            for step, time in enumerate(times)
            for place, target in enumerate(self.targets)
        ]

    def csv(self) -> str:
        """The rows as CSV, with a header."""
        file = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(f"{v:.7g}" if isinstance(v, float) else v for v in row.values())
        return file.getvalue()


def forecast_series(task: Any, table: SeriesTable) -> Forecasts:
    """Forecasts series from their last value on.

    Args:
        task: A forecaster, exported or not.
        table: The series, with known covariates of the horizon in the rows after that.

    Returns:
        The forecasts.

    Raises:
        UserError: See `histories_of`.
    """
    past, future = histories_of(task.histories, table)
    steps = range(task.horizon)
    times = [
        [table.time(one, end + step) for step in steps] for one, end in enumerate(table.ends())
    ]
    quantiles = task.predict(past, future or None)
    return Forecasts(table.ids, times, table.columns["target"], task.quantiles, quantiles)


def histories_of(form: Histories, table: SeriesTable) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Divides series where their targets end.

    Args:
        form: The form of a forecaster's inputs.
        table: The series.

    Returns:
        The history of each series, and the known covariates of its horizon if there are some.

    Raises:
        UserError: The series have other channels; one has no value, or no known covariates in the
            horizon.
    """
    found = (table.targets, len(table.channels) - table.targets, table.known)
    expected = (form.targets, form.channels - form.targets, form.known)
    if found != expected:
        raise UserError(
            f"{table.name}: series must have {expected[0]} targets and {expected[1]} covariates, "
            f"{expected[2]} of them known in the horizon. Received: {dict(table.columns)}."
        )
    ends, past, future = table.ends(), [], []
    for one, (values, end) in enumerate(zip(table.values, ends, strict=True)):
        of = f" of the series {table.ids[one]!r}" if table.ids[one] else ""
        if end == 0:
            raise UserError(f"{table.name}: no target{of} has a value.")
        past.append(values[:end])
        if form.known:
            ahead = values[end : end + form.horizon, -form.known :]
            missing = form.horizon - int((~np.isnan(ahead).any(axis=1)).sum())
            if missing:
                raise UserError(
                    f"{table.name}: {missing:,} of the {form.horizon:,} steps after the last value"
                    f"{of} have no known covariates ({', '.join(table.columns['known'])}). Add "
                    f"rows until {table.time(one, end + form.horizon - 1)}, with empty targets."
                )
            future.append(ahead)
    return past, future
