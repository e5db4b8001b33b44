"""Times of rows, and the equal steps that they are on."""

import dataclasses
import datetime
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn.validation import UserError

NUMBER, MONTH, DATE, DATETIME = "number", "month", "date", "datetime"
COMPACT, COMPACT_MONTH, COMPACT_WEEK = "compact", "compact month", "compact week"
DOTTED_MONTH = "dotted month"
"""How times are written: 1958 or 0.5, 1958-03, 1958-03-29, 1958-03-29T12:00, 19580329, 195803,
195813 (a week of ISO 8601), 1958.03."""

_FORMATS = {
    COMPACT: "%Y%m%d",
    COMPACT_MONTH: "%Y%m",
    COMPACT_WEEK: "%G%V",
    DOTTED_MONTH: "%Y.%m",
    MONTH: "%Y-%m",
    DATE: "%Y-%m-%d",
}
_OF_NUMBERS = {COMPACT: ".0f", COMPACT_MONTH: ".0f", COMPACT_WEEK: ".0f", DOTTED_MONTH: ".2f"}
"""Styles of dates that are numbers, and how they are written; the first that all have counts."""

NUMBERS = {
    COMPACT: "dates",
    COMPACT_MONTH: "a year and a month",
    COMPACT_WEEK: "a year and a week",
    DOTTED_MONTH: "a year and a month",
}
"""What numbers of these styles are read as."""

_FISCAL = 13  # months between 2000/01 and 2001/02
_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])", re.I)
_YEAR_FIRST = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(\d{1,2}:\d{2}.*))?")
_MONTH_DAYS = 28
_DAY = 86.4e9  # microseconds
_TOLERANCE = 1e-3  # of a step, for times that are rounded fractions

Time = float | datetime.datetime


def parse_time(cell: Any) -> Time | None:
    """Reads a time.

    Args:
        cell: A number, a date, or a text of one: ISO 8601, also with slashes or dots between year,
            month and day, a date such as 31.05.2024, a month such as 2024-05, or a quarter such as
            2024Q2.

    Returns:
        A number, or a date and time, in UTC if the text has a time zone; `None` for anything else.
    """
    time = _parsed(cell)
    return _in_utc(time) if isinstance(time, datetime.datetime) else time


def _parsed(cell: Any) -> Time | None:
    """A time with the time zone that it is written with."""
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, str):
        cell = _of_text(cell.strip())
    if isinstance(cell, datetime.datetime):
        return cell
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return float(cell) if is_number and np.isfinite(cell) else None


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    return time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


def _of_text(text: str) -> Time | None:
    try:
        return float(text)
    except ValueError:
        pass
    if quarter := _QUARTER.fullmatch(text):
        return datetime.datetime(int(quarter[1]), 3 * int(quarter[2]) - 2, 1)
    try:
        if _YEAR_FIRST.fullmatch(text):
            year, month, day = [*map(int, re.split("[-/.]", text)), 1][:3]
            return datetime.datetime(year, month, day)
        if parts := _DAY_FIRST.fullmatch(text):
            day, month, year = (int(part) for part in parts.groups()[:3])
            hour, _, rest = (parts[4] or "0:00").partition(":")
            return datetime.datetime.fromisoformat(
                f"{year:04}-{month:02}-{day:02}T{int(hour):02}:{rest}"
            )
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


@dataclasses.dataclass(frozen=True)
class TimeAxis:
    """Equal steps of time.

    Attributes:
        style: How times are written.
        unit: What `step` counts: "number", "microsecond", "month", or "row".
        step: Number of units between two steps.
        day: Day of the month of all times where the unit is a month; 0 for its last day.

    Examples:
        >>> axis, positions = time_axis(["2024-01-31", "2024-02-29", "2024-04-30"])
        >>> axis.unit, axis.step, positions.tolist()
        ('month', 1, [24288, 24289, 24291])
        >>> axis.written(24290)
        '2024-03-31'
    """

    style: str
    unit: str
    step: float
    day: int = 1

    def positions(self, times: Sequence[Time]) -> np.ndarray:
        """Numbers of steps since the beginning of the axis, float64 (times,)."""
        return np.array([self._units(time) for time in times], np.float64) / self.step

    def written(self, position: float) -> str:
        """The time of a step as text, in the style of the times that were read."""
        units = position * self.step
        if self.unit == "row":
            return str(round(units))
        if self.unit == "number":
            digits = max(0, 4 - math.floor(math.log10(self.step)))
            return f"{round(units, digits):.15g}"
        if self.unit == "month":
            year, month = divmod(round(units), 12)
            first = datetime.datetime(year, month + 1, 1)
            days = datetime.timedelta(days=self.day - 1)
            time = _month_end(first) if self.day == 0 else first + days
        else:
            time = _EPOCH + round(units) * _MICROSECOND
        return time.strftime(_FORMATS[self.style]) if self.style in _FORMATS else time.isoformat()

    def described(self) -> str:
        """The length of a step in words."""
        if self.unit == "microsecond":
            seconds = self.step / 1e6
            for name, size in (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
                if seconds % size == 0:
                    return _counted(seconds / size, name)
            return _counted(seconds, "second")
        if self.unit == "month" and self.step % 12 == 0:
            return _counted(self.step / 12, "year")
        return _counted(self.step, "unit" if self.unit == "number" else self.unit)

    def _units(self, time: Time) -> float:
        if not isinstance(time, datetime.datetime):
            return time
        if self.unit == "month":
            return 12 * time.year + time.month - 1
        return (time - _EPOCH) // _MICROSECOND


def time_axis(
    cells: Sequence[Any], series: np.ndarray | None = None
) -> tuple[TimeAxis, np.ndarray]:
    """Finds the equal steps that times are on: the most frequent difference of neighbors.

    Args:
        cells: Times, see `parse_time`.
        series: Number of the series of each time, (times,), if there are several.

    Returns:
        The axis and the position of each time on it, float64; whole numbers apart within a series
        if its times are on equal steps.

    Raises:
        UserError: Some times are numbers and others are dates, some have a time zone and others
            have none, or they seem to be fiscal years (2000/01).
    """
    times: list[Any] = [_parsed(cell) for cell in cells]
    dated = [isinstance(time, datetime.datetime) for time in times]
    compact = None if any(dated) else _dates_of_numbers(times)
    if compact is not None:
        style, times = compact
    elif any(dated):
        _require_alike("numbers or dates, not both", cells, dated)
        zoned = [time.tzinfo is not None for time in times]
        _require_alike("all in a time zone, or all without one", cells, zoned)
        times = list(map(_in_utc, times))
        style = DATETIME if any(time.time() != datetime.time() for time in times) else DATE
        if all(isinstance(cell, str) and len(cell.strip()) == 7 for cell in cells):
            style = MONTH
    else:
        style = NUMBER
    unit, day = _unit(times, style)
    units = TimeAxis(style, unit, 1, day).positions(times)
    series = np.zeros(len(times), np.int64) if series is None else series
    order = np.lexsort((units, series))
    differences = np.diff(units[order])[np.diff(series[order]) == 0]
    step = _most_frequent(differences[differences > 0], 1.0 if unit != "microsecond" else _DAY)
    if (unit, step) == ("month", _FISCAL):
        raise UserError(
            f"Times such as {cells[0]} are a year and a month, and would be 13 months apart here. "
            "If they are years that begin in one and end in the next, write the first one alone."
        )
    if step % 1:
        step = _not_rounded(step, float(np.ptp(units)))
    axis = TimeAxis(style, unit, step, day)
    return axis, axis.positions(times)


def on_steps(positions: np.ndarray) -> np.ndarray:
    """Whether each time of a series is a whole number of steps after the first one, (times,)."""
    steps = positions - positions[0]
    return np.abs(steps - np.round(steps)) < _TOLERANCE


def _not_rounded(step: float, duration: float) -> float:
    """A step by the time from the first to the last one: an hour is not 0.041667 days."""
    better = duration / max(round(duration / step), 1)
    return better if abs(better - step) < _TOLERANCE * step else step


def _require_alike(wanted: str, cells: Sequence[Any], has: Sequence[bool]) -> None:
    """Raises unless all times have something, or none."""
    if any(has) and not all(has):
        received = f"{cells[has.index(True)]!r} and {cells[has.index(False)]!r}"
        raise UserError(f"Times must be {wanted}. Received: {received}.")


def _dates_of_numbers(times: Sequence[float]) -> tuple[str, list[datetime.datetime]] | None:
    """The style of numbers that are all dates, such as 19580329, and the dates."""
    for style in _OF_NUMBERS:
        dates = []
        for time in times:
            date = _date_of_number(time, style)
            if date is None:
                break
            dates.append(date)
        if dates and len(dates) == len(times):
            return style, dates
    return None


def _date_of_number(time: float, style: str) -> datetime.datetime | None:
    written = f"{time:{_OF_NUMBERS[style]}}"
    # The first day of a month is that without one; of a week the day must be given.
    text, form = (f"{written}1", "%G%V%u") if style == COMPACT_WEEK else (written, _FORMATS[style])
    try:
        date = datetime.datetime.strptime(text, form)
    except ValueError:
        return None
    return date if date.strftime(_FORMATS[style]) == written and float(written) == time else None


def _unit(times: Sequence[Any], style: str) -> tuple[str, int]:
    if style == NUMBER:
        return "number", 1
    clocks = {time.time() for time in times}
    days = {time.day for time in times}
    if clocks == {datetime.time()} and len({(time.year, time.month) for time in times}) > 1:
        if len(days) == 1 and min(days) <= _MONTH_DAYS:
            return "month", min(days)
        if all(_month_end(time) == time for time in times):
            return "month", 0
    return "microsecond", 1


def _most_frequent(differences: np.ndarray, default: float) -> float:
    """The most frequent difference, the smallest one of equally frequent ones."""
    if not len(differences):
        return default
    values, counts = np.unique(np.round(differences, 9), return_counts=True)
    return float(values[np.argmax(counts)])


def _month_end(time: datetime.datetime) -> datetime.datetime:
    following = datetime.datetime(time.year + time.month // 12, time.month % 12 + 1, 1)
    return following - datetime.timedelta(days=1)


def _counted(count: float, name: str) -> str:
    return f"1 {name}" if count == 1 else f"{count:g} {name}s"
