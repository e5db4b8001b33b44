"""Columns of a table as the parts of series: time, targets, covariates, identity."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from keras_attn.data.reading.several import LARGEST, MISSING
from keras_attn.data.reading.table import Key, Table, shown_names
from keras_attn.data.reading.tables import ConllTable
from keras_attn.validation import UserError, require, require_one_of

ROLES = ("time", "target", "unknown", "known", "series")
"""Parts of series, the values in the order of a model's channels: target, unknown, known."""

OF_VALUES = ("target", "unknown", "known")
"""Those that may have several columns."""

_MISSING = {*MISSING, ".", "..", ":", "-"}
_USUAL = {
    "time": (
        *("time", "date", "datetime", "timestamp", "ds", "year", "month", "week", "day", "hour"),
        *("period", "t"),
    ),
    "series": ("series", "series_id", "unique_id", "item_id", "id"),
    "target": ("target", "value", "y"),
}


@dataclasses.dataclass(frozen=True)
class SeriesColumns:
    """The columns of series in a table.

    Attributes:
        keys: Columns of each role that the table has.
        names: What they are called.
        has_header: Whether the first row holds the names of the columns.
        width: Number of columns that each row must have, or `None` if it does not matter.
    """

    keys: Mapping[str, tuple[Key, ...]]
    names: Mapping[str, tuple[str, ...]]
    has_header: bool
    width: int | None


def check_series_columns(columns: Mapping[str, Any] | None) -> None:
    """Raises `UserError` unless columns are given by the parts of series, with a target."""
    if columns is None:
        return
    for role, given in columns.items():
        require_one_of("columns", role, ROLES)
        found = split_columns(given)
        require(
            bool(found) and (role in OF_VALUES or len(found) == 1),
            f"`columns` must have {'names' if role in OF_VALUES else 'one name'} for {role}, such "
            "as target=sales,visits.",
            **{role: given},
        )
    require("target" in columns, "`columns` must have a target.", columns=dict(columns))


def split_columns(given: Any) -> tuple[str, ...]:
    """Columns of one role: several names or numbers with commas between them, or a list."""
    parts = str(given).split(",") if not isinstance(given, list | tuple) else map(str, given)
    return tuple(part.strip() for part in parts if part.strip())


def select_series(table: Table, columns: Mapping[str, Any] | None) -> SeriesColumns:
    """Chooses the columns of a table.

    Args:
        table: The table.
        columns: Names or numbers from 1 by role; by default those of usual names, and the only
            other column as the target.

    Raises:
        UserError: There is no such column, or it is not clear which one the target is.
    """
    require(not isinstance(table, ConllTable), f"{table.path}: sentences have no numbers.")
    check_series_columns(columns)
    first = [cell.strip() for cell in table.first or ()]
    names = list(table.names) if table.names is not None else first
    if columns:
        chosen = {role: split_columns(given) for role, given in columns.items()}
    else:
        chosen = _usual(table.path, names)
    indices = {
        role: tuple(_index(table.path, names, column) for column in given)
        for role, given in chosen.items()
    }
    used = [index for found in indices.values() for index in found]
    double = sorted({names[index] for index in used if used.count(index) > 1})
    require(not double, f"{table.path}: a column can have one part only.", columns=double)
    if table.names is not None:
        keys = {role: tuple(names[index] for index in found) for role, found in indices.items()}
        return SeriesColumns(keys, keys, False, None)
    values = [first[index] for role in OF_VALUES for index in indices.get(role, ())]
    has_header = any(parse_value(table.plain_number(cell)) is None for cell in values)
    shown = names if has_header else [str(number) for number in range(1, len(names) + 1)]
    return SeriesColumns(
        dict(indices),
        {role: tuple(shown[index] for index in found) for role, found in indices.items()},
        has_header,
        len(names),
    )


def parse_value(cell: Any) -> float | None:
    """Reads a value.

    Args:
        cell: A number of the range of float32, or a text of one; nothing, NaN, NA, null, or the
            marks of statistical offices (".", "..", ":", "-") for a missing value.

    Returns:
        The number, NaN for a missing one; `None` for anything else.
    """
    if cell is None:
        return math.nan
    if isinstance(cell, str) and cell.strip().casefold() in _MISSING:
        return math.nan
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if abs(value) > LARGEST else value


def _usual(path: str, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    lower = [name.casefold() for name in names]
    numbers = {}
    for role, usual in _USUAL.items():
        found = [lower.index(name) for name in usual if name in lower]
        if found:
            numbers[role] = found[0]
    rest = [index for index in range(len(names)) if index not in numbers.values()]
    if "target" not in numbers and len(rest) == 1:
        numbers["target"] = rest.pop()
    if "target" not in numbers or rest:
        raise UserError(
            f"{path}: which of the columns {shown_names(names)} are the targets? Set `columns` "
            "(--columns time=NAME target=NAME,NAME known=NAME unknown=NAME series=NAME; only the "
            "target is needed)."
        )
    return {role: (str(index + 1),) for role, index in numbers.items()}


def _index(path: str, names: Sequence[str], column: str) -> int:
    if column in names:
        return names.index(column)
    if column.isascii() and column.isdecimal() and 0 < int(column) <= len(names):
        return int(column) - 1
    raise UserError(f"{path} has no column {column!r}; it has {shown_names(names)}.")
