"""Series in memory: tables of pandas and the like, and arrays."""

import datetime
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.data.series.columns import OF_VALUES, split_columns
from keras_attn.data.series.reading import read_series
from keras_attn.data.series.series import SeriesTable
from keras_attn.files import write_text
from keras_attn.validation import UserError, require


def read_given(
    data: Any,
    columns: Mapping[str, Any] | None = None,
    encoding: str | None = None,
    time_steps: str = "equal",
) -> SeriesTable:
    """Reads series from files or from memory.

    Args:
        data: A path or a list of them, or see `write_series`.
        columns: Columns by role, see `read_series`.
        encoding: Encoding of files.
        time_steps: See `read_series`.

    Raises:
        UserError: The data have another form, or see `read_series`.
    """
    paths = [data] if isinstance(data, str | os.PathLike) else data
    if isinstance(paths, list) and all(isinstance(path, str | os.PathLike) for path in paths):
        return read_series(paths, columns, False, encoding, time_steps)
    require(encoding is None, "`encoding` is for files.", encoding=encoding)
    columns = columns or columns_of_array(data)
    with tempfile.TemporaryDirectory() as folder:
        path = write_series(data, Path(folder) / "series.jsonl", columns)
        return read_series(path, columns, time_steps=time_steps)


def write_series(data: Any, path: Path, columns: Mapping[str, Any] | None = None) -> Path:
    """Writes series in memory to a file of JSON lines, a row each.

    Args:
        data: A pandas DataFrame, a `datasets.Dataset`, a mapping of columns, a list of dicts, or an
            array (steps,) or (steps, channels), whose channels are the columns of `columns` in the
            order of targets, unknown and known covariates; without `columns` all are targets.
        path: The file.
        columns: Columns by role.

    Returns:
        The file.

    Raises:
        UserError: The data have another form, or no row.
    """
    table = _table(data, columns)
    require(bool(table), "A table must have at least one column.", columns=0)
    lengths = {name: len(values) for name, values in table.items()}
    require(len(set(lengths.values())) == 1, "All columns must be equally long.", **lengths)
    require(min(lengths.values()) > 0, "A table must have at least one row.", rows=0)
    rows = zip(*table.values(), strict=True)
    lines = (json.dumps(dict(zip(table, map(_plain, row), strict=True))) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(lines) + "\n")
    return path


def columns_of_array(data: Any) -> dict[str, Any] | None:
    """Columns of an array, all of them targets; `None` for other data."""
    names = list(_table(data, None)) if isinstance(data, np.ndarray) else None
    return {"target": names} if names else None


def _table(data: Any, columns: Mapping[str, Any] | None) -> dict[str, list]:
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        found = dict.fromkeys(name for row in data for name in row)
        return {str(name): [row.get(name) for row in data] for name in found}
    names = getattr(data, "column_names", None)
    if names is None:
        names = getattr(data, "columns", data if isinstance(data, Mapping) else None)
    if names is not None:
        return {str(name): list(data[name]) for name in names}
    try:
        values = np.asarray(data, np.float64)
    except (TypeError, ValueError):
        raise UserError(
            "Series must be a path, a table such as a pandas DataFrame, or an array (steps, "
            f"channels) of numbers. Received: {type(data).__name__}."
        ) from None
    values = values[:, None] if values.ndim == 1 else values
    require(values.ndim == 2, "Series must be an array (steps, channels).", shape=values.shape)
    given = columns or {}
    chosen = [name for role in OF_VALUES for name in split_columns(given.get(role, ()))]
    chosen = chosen or [f"target_{number}" for number in range(1, values.shape[1] + 1)]
    require(
        len(chosen) == values.shape[1],
        "An array must have a channel for each target, unknown and known covariate.",
        shape=values.shape,
        columns=chosen,
    )
    return {name: values[:, place].tolist() for place, name in enumerate(chosen)}


def _plain(value: Any) -> Any:
    """A cell as JSON."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)
