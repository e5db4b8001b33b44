"""Series read from tables of any form."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_attn.data.files import joined_names
from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.lines import excerpt
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading, Row
from keras_attn.data.reading.table import Record, Table
from keras_attn.data.reading.tables import open_table
from keras_attn.data.series.columns import (
    OF_VALUES,
    SeriesColumns,
    parse_value,
    select_series,
)
from keras_attn.data.series.series import SeriesTable
from keras_attn.data.series.times import NUMBERS, TimeAxis, on_steps, parse_time, time_axis
from keras_attn.validation import UserError, require, require_one_of

TIME_STEPS = ("equal", "rows")
"""How rows are put on steps: by their times, which must be equally far apart, or one after the
other."""

_HOURS = 12 * 3.6e9  # microseconds
_RARE = 0.01  # of the rows: no other series, but an hour that is repeated
_FLOAT32 = 16 * 2.0**-23  # of a number: 16 of the smallest steps
_FEWEST = 0.05  # of the steps from the first to the last time that must have a row


def read_series(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    columns: Mapping[str, Any] | None = None,
    skip_bad_lines: bool = False,
    encoding: str | None = None,
    time_steps: str = "equal",
) -> SeriesTable:
    r"""Reads series of numbers from tables.

    Rows may be in any order. Lines before the first one that begin with # are left out. An empty
    cell, NaN, NA and null are missing values, and so are all values of a step without a row.

    Args:
        paths: Files of the forms that `keras_attn.data.read_pairs` reads; several ones are read as
            one table.
        columns: Columns by role, names or numbers from 1: `time`, `series` (the identity of a
            series), and `target`, `known` and `unknown`, which may have several with commas between
            them or as a list. By default those of usual names, and the only other column is the
            target. Without a time the rows are steps in their order.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        encoding: Encoding of the files, by default UTF-8.
        time_steps: "equal" if times are equal steps apart, some perhaps without a row; "rows" if
            each row is a step, whatever its time.

    Returns:
        The series, in the order of their first rows.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged, it is not clear which columns
            are meant, a cell is not a number or a time, a series has a time twice, or the times are
            not on equal steps.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("sales.csv").write_text("date,sales\n2024-01,5\n2024-02,7\n2024-04,6\n")
        >>> table = read_series("sales.csv")
        >>> table.values[0].ravel().tolist(), table.time(0, 4)
        ([5.0, 7.0, nan, 6.0], '2024-05')
    """
    require_one_of("time_steps", time_steps, TIME_STEPS)
    files = expanded(paths)
    reading = Reading(joined_names(files), Form(columns, encoding, skip_bad_lines))
    found: dict[str, SeriesColumns] = {}
    rows = list(reading.good(row for file in files for row in _file_rows(file, reading, found)))
    roles = _roles(found)
    times, ids, values = zip(*rows, strict=True)
    names = list(dict.fromkeys(ids))
    numbers = {name: number for number, name in enumerate(names)}
    series = np.array([numbers[name] for name in ids], np.int64)
    cells = np.array(values, np.float64)
    notes = list(reading.remarks)
    if "time" not in roles:
        notes.append(f"{reading.name}: no column of times, so each row is one step.")
        axis, positions = TimeAxis("number", "row", 1), _order(series).astype(np.float64)
    else:
        axis, positions = time_axis(times, series)
        _check_double(reading.name, series, positions, names, axis, "series" in roles)
        notes += _sorting(reading.name, series, positions)
        if time_steps == "rows":
            axis, positions = TimeAxis("number", "row", 1), _order(series, positions) * 1.0
        else:
            _check_steps(reading.name, series, positions, axis, times)
    table = [_on_steps(cells[series == one], positions[series == one]) for one in range(len(names))]
    return SeriesTable(
        names,
        [steps for steps, _ in table],
        [start for _, start in table],
        axis,
        roles,
        reading.name,
        reading.skipped,
        tuple(notes),
    )


def _file_rows(file: str, reading: Reading, found: dict[str, SeriesColumns]) -> Iterator[Row]:
    """Yields time, series and values of each row of a file."""
    form = reading.form
    table = open_table(file, TabSeparatedTable, form.encoding, form.skip_bad_lines, "#")
    chosen = found[file] = select_series(table, form.columns)
    keys = [key for keys in chosen.keys.values() for key in keys]
    rows = table.after_header if chosen.has_header else table.records
    for record in rows(keys):
        yield _row(table, chosen, record)
    if table.doubt is not None:
        reading.notes.append(f"{file}: {table.doubt}.")


def _row(table: Table, chosen: SeriesColumns, record: Record) -> Row:
    mistake = record.mistake
    if mistake is None and chosen.width not in (None, len(record.cells)):
        mistake = f"expected {chosen.width} fields as in the first line, found {len(record.cells)}"
    if mistake is not None:
        return Row((), f"{table.place(record)}: {mistake}")
    time, identity, values = 0.0, "", []
    for key in chosen.keys.get("time", ()):
        time = record.cells[key]
        if parse_time(time) is None:
            return _wrong(table, record, key, "a number or a date such as 2024-05-31")
    for key in chosen.keys.get("series", ()):
        identity = "" if record.cells[key] is None else str(record.cells[key]).strip()
        if not identity:
            return _wrong(table, record, key, "the name of a series")
    for role in OF_VALUES:
        for key in chosen.keys.get(role, ()):
            value = parse_value(table.plain_number(record.cells[key]))
            if value is None:
                return _wrong(table, record, key, "a number such as 1234.5")
            values.append(value)
    return Row((time, identity, values))


def _wrong(table: Table, record: Record, key: Any, expected: str) -> Row:
    cell = record.cells[key]
    shown = excerpt(cell) if isinstance(cell, str) and cell.strip() else f"{cell!r}"
    return Row((), f"{table.place(record, key)}: expected {expected}, found {shown}")


def _roles(found: Mapping[str, SeriesColumns]) -> dict[str, tuple[str, ...]]:
    """The names of the columns by role, which all files must have."""
    (first, columns), *others = found.items()
    for file, other in others:
        require(
            other.names == columns.names,
            "All files must have the same columns.",
            **{first: dict(columns.names), file: dict(other.names)},
        )
    return dict(columns.names)


def _order(series: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
    """The place of each row among those of its series, from 0."""
    rows = np.arange(len(series))
    order = np.lexsort((rows if positions is None else positions, series))
    firsts = np.searchsorted(series[order], series[order])
    places = np.empty(len(series), np.int64)
    places[order] = rows - firsts
    return places


def _check_double(
    name: str,
    series: np.ndarray,
    positions: np.ndarray,
    names: Sequence[str],
    axis: TimeAxis,
    has_series: bool,
) -> None:
    """Raises if a series has a time twice."""
    order = np.lexsort((positions, series))
    double = (np.diff(series[order]) == 0) & (np.diff(positions[order]) == 0)
    if double.any():
        row = order[double.argmax()]
        first, hint = axis.written(positions[row]), ""
        if has_series:
            first += f" of the series {names[series[row]]!r}"
        else:
            hint = (
                " If there are several series, name the column of their names (series=NAME); a "
                "time must be in one column."
            )
            is_clock = axis.unit == "microsecond" and axis.step < _HOURS
            if is_clock and double.sum() < _RARE * len(series):
                hint = (
                    " Where clocks are set back, an hour occurs twice: write times in UTC, or with "
                    "their distance to it (2024-10-27T02:30+02:00)."
                )
        raise UserError(
            f"{name}: {double.sum():,} rows have a time that another row has, the first one "
            f"{first}.{hint}"
        )


def _sorting(name: str, series: np.ndarray, positions: np.ndarray) -> list[str]:
    """A line if the rows of a series are not in the order of time."""
    order = np.argsort(series, kind="stable")
    back = (np.diff(series[order]) == 0) & (np.diff(positions[order]) < 0)
    if not back.any():
        return []
    return [f"{name}: {back.sum():,} rows come after a later one; they are sorted by time."]


def _check_steps(
    name: str, series: np.ndarray, positions: np.ndarray, axis: TimeAxis, times: Sequence[Any]
) -> None:
    """Raises if the times of a series are not on equal steps, or on too small ones."""
    off, steps = 0, 0.0
    first = ""
    for one in np.unique(series):
        rows = np.flatnonzero(series == one)
        ordered = rows[np.argsort(positions[rows], kind="stable")]
        wrong = ~on_steps(positions[ordered])
        if wrong.any() and not off:
            first = str(times[ordered[wrong.argmax()]])
        off += int(wrong.sum())
        steps += positions[ordered[-1]] - positions[ordered[0]] + 1
    hint = "Set `data.time_steps` (--set data.time_steps=rows) to take each row as one step."
    if off:
        raise UserError(
            f"{name}: the times of {off:,} of {len(series):,} rows are not whole steps of "
            f"{axis.described()} after the first one, such as {first}. {hint}"
        )
    if len(series) < _FEWEST * steps:
        raise UserError(
            f"{name}: only {len(series):,} of {steps:,.0f} steps of {axis.described()} have a row. "
            f"{hint}"
        )


def _on_steps(values: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, float]:
    """The values of a series at all steps from the first to the last one, and its start."""
    start = positions.min()
    steps = np.round(positions - start).astype(np.int64)
    series = np.full((steps.max() + 1, values.shape[1]), np.nan)
    series[steps] = values
    return series, float(start)


def described(table: SeriesTable) -> list[str]:
    """Lines about series for users: how they were read, how long they are, what is missing."""
    lines = list(table.notes)
    if table.skipped:
        lines.append(f"{table.name}: {table.skipped:,} malformed rows left out.")
    lengths = table.ends()
    shown = f"{lengths.min():,} to {lengths.max():,}" if len(lengths) > 1 else f"{lengths[0]:,}"
    lines.append(
        f"    series: {len(lengths):,} of {shown} steps of {table.axis.described()}, "
        f"{', '.join(table.channels)}"
    )
    if table.axis.style in NUMBERS:
        first = table.time(0, 0)
        lines.append(
            f"      times: numbers such as {first} are read as {NUMBERS[table.axis.style]}"
        )
    after = sum(len(values) for values in table.values) - int(lengths.sum())
    if after:
        lines.append(f"    future: {after:,} steps after the last value of a target")
    for name, missing in missing_values(table).items():
        if missing:
            lines.append(f"   missing: {missing:,} of {lengths.sum():,} values of {name}")
    for target, name in enumerate(table.columns["target"]):
        known = (values[:end, target] for values, end in zip(table.values, lengths, strict=True))
        constant = sum(map(_is_constant, known))
        if constant:
            lines.append(f"  constant: {name} never changes in {constant:,} series")
    return lines + [line for name in table.channels for line in _doubts(table, name)]


def _doubts(table: SeriesTable, name: str) -> list[str]:
    """Lines about values of a channel that may mean something else than they say."""
    channel = table.channels.index(name)
    values = np.concatenate([series[:, channel] for series in table.values])
    values = values[~np.isnan(values)]
    lines = []
    for extreme in np.unique([values.min(), values.max()]) if len(values) else ():
        rest = values[values != extreme]
        is_nines = re.fullmatch(r"-?9[9.]+", f"{extreme:.12g}") is not None
        if is_nines and len(rest) and min(abs(rest - extreme)) > np.ptp(rest):
            count = len(values) - len(rest)
            lines.append(
                f"    extreme: {extreme:.12g} occurs {count:,} times in {name}; if that means a "
                "missing value, empty these cells"
            )
    steps = np.abs(np.diff(values))
    if steps.any() and np.abs(values).max() * _FLOAT32 > np.median(steps[steps > 0]):
        lines.append(
            f"  precision: {name} changes by less than float32 holds of numbers of its size; "
            "subtract a constant, or take its differences"
        )
    return lines


def missing_values(table: SeriesTable) -> dict[str, int]:
    """Number of missing values of each channel until the targets end, by its name."""
    parts = [values[:end] for values, end in zip(table.values, table.ends(), strict=True)]
    counts = np.isnan(np.concatenate(parts)).sum(axis=0)
    return dict(zip(table.channels, counts.tolist(), strict=True))


def _is_constant(values: np.ndarray) -> bool:
    values = values[~np.isnan(values)]
    return len(values) > 1 and bool(np.ptp(values) == 0)
