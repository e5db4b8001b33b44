"""Data in memory, written to the files that runs read."""

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.data.reading.columns import columns_by_names
from keras_attn.data.reading.several import SEVERAL
from keras_attn.files import replaced_file
from keras_attn.validation import UserError, require

Columns = str | Sequence[str] | Mapping[str, str | int]
"""Columns of a table: by the parts of an example, or in their order."""


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a task's examples.

    Attributes:
        names: Their names.
        optional: Names of further ones, which data may lack.
        of_files: Whether the first part is the path of a file.
    """

    names: tuple[str, ...]
    optional: tuple[str, ...] = ()
    of_files: bool = False

    def named(self, columns: Columns | None) -> Mapping[str, str | int] | None:
        """Columns by the parts that they are.

        Raises:
            UserError: There are too few or too many columns.
        """
        if columns is None or isinstance(columns, Mapping):
            return columns
        columns = [columns] if isinstance(columns, str) else list(columns)
        names = (*self.names, *self.optional)
        require(
            len(self.names) <= len(columns) <= len(names),
            f"`columns` must name one for each of {', '.join(self.names)}.",
            columns=columns,
        )
        return dict(zip(names, columns, strict=False))


def is_path(data: Any) -> bool:
    """Whether data are files: a path or the name of a data set, or a list of `pathlib.Path`."""
    if isinstance(data, str | Path):
        return True
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(p, Path) for p in data)


def paths_of(data: Any) -> list[str]:
    """The paths that data are, see `is_path`, as text."""
    return [str(data)] if isinstance(data, str | Path) else [str(path) for path in data]


def written_data(
    data: Any, folder: Path, name: str, parts: Parts, columns: Columns | None = None
) -> list[str]:
    """Writes data to a file of JSON lines, unless they are files already.

    Args:
        data: A path or the name of a data set; a list of `pathlib.Path`; a list of texts, or of
            tuples; a tuple of two lists, sources and targets; a pandas DataFrame, a
            `datasets.Dataset`, a list of dicts or a mapping of columns; a `tf.data.Dataset` of
            texts, tuples or dicts, in batches or not.
        folder: Where the file is written.
        name: Name of the file, without its ending.
        parts: The parts of an example.
        columns: Columns of a table; those of usual names by default.

    Returns:
        A value of the setting `data.train`.

    Raises:
        UserError: The data are of another form, empty, or lack a column or a value.
    """
    if is_path(data):
        return paths_of(data)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    with replaced_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        count = 0
        for count, row in enumerate(_rows(data, parts, columns), 1):
            file.write(f"{_line_of(row, name, count - 1, parts)}\n")
        require(count > 0, f"`{name}` must have at least one example.", rows=0)
    return [str(path)]


def _line_of(row: Any, name: str, number: int, parts: Parts) -> str:
    """An example as a line of JSON."""
    row = row if isinstance(row, tuple) else (row,)
    fewest, most = len(parts.names), len(parts.names) + len(parts.optional)
    require(
        fewest <= len(row) <= most,
        f"An example of `{name}` must have the parts {', '.join(parts.names)}{_forms(fewest)}. "
        "Files are given as `pathlib.Path`.",
        example=number,
        parts=len(row),
    )
    named = dict(zip((*parts.names, *parts.optional), row, strict=False))
    texts: dict[str, Any] = {
        part: (_listed if part in SEVERAL else _written)(value, name, number, part)
        for part, value in named.items()
    }
    if parts.of_files:
        first = parts.names[0]
        texts[first] = str(Path(texts[first]).absolute())
    return _json_line(texts, name, number)


def _forms(parts: int) -> str:
    if parts == 1:
        return ": a list of texts, or one column of a table"
    return ": a list of tuples, a tuple of lists, or columns of a table"


def _rows(data: Any, parts: Parts, columns: Columns | None) -> Iterable[Any]:
    if type(data).__module__.startswith("tensorflow") and hasattr(data, "element_spec"):
        return _dataset_rows(data, parts, columns)
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        data = {name: [row.get(name) for row in data] for name in data[0]}
    if hasattr(data, "column_names") and hasattr(data, "flatten"):  # of `datasets`
        data = data.flatten()  # {"translation": {"en": …}} to {"translation.en": …}
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is None and hasattr(data, "keys") and not hasattr(data, "iloc"):  # but for a Series
        names = data.keys()
    if names is not None:
        chosen = _columns(list(names), parts, columns)
        return zip(*(list(data[name]) for name in chosen), strict=True)
    require(
        columns is None,
        "`columns` can be given for a table only.",
        data=type(data).__name__,
        columns=columns,
    )
    if isinstance(data, tuple) and len(data) == 2 and not any(map(_is_one, data)):
        sources, targets = map(list, data)
        require(
            len(sources) == len(targets),
            "There must be as many targets as sources.",
            sources=len(sources),
            targets=len(targets),
        )
        return zip(sources, targets, strict=True)
    if type(data).__module__.startswith("tensorflow") or not isinstance(data, Iterable):
        raise UserError(
            "Data must be a path, a list of texts or pairs, a tuple of two lists, a table, or a "
            f"tf.data.Dataset. Received: {type(data).__name__}."
        )
    return (row if _is_one(row) else tuple(row) for row in data)


def _dataset_rows(data: Any, parts: Parts, columns: Columns | None) -> Iterator[Any]:
    """The examples of a `tf.data.Dataset`."""
    import tensorflow as tf

    spec = data.element_spec
    flat = tf.nest.flatten(spec)
    if flat and all(getattr(one, "shape", None) is not None and one.shape.rank for one in flat):
        data = data.unbatch()
    names = _columns(list(spec), parts, columns) if isinstance(spec, Mapping) else None
    require(
        names is not None or columns is None,
        "`columns` can be given for a tf.data.Dataset of dicts only.",
        columns=columns,
    )
    for element in data.as_numpy_iterator():
        yield tuple(element[name] for name in names) if names else element


def _columns(names: list[Any], parts: Parts, columns: Columns | None) -> list[Any]:
    """The columns of a table to take, in the order of the parts."""
    given = parts.named(columns)
    if given is None:
        texts = [str(name) for name in names]
        chosen = columns_by_names("The table", texts, parts.names, parts.optional)
        return [names[index] for index in chosen.values()]
    order = [given[part] for part in (*parts.names, *parts.optional) if part in given]
    require(
        set(parts.names) <= set(given) and set(order) <= set(names),
        "`columns` must name the columns to read, such as the text and the label.",
        columns=columns,
        table=[str(name) for name in names],
    )
    return order


def _is_one(row: Any) -> bool:
    """Whether an example has one part: a text, or what is refused later."""
    return isinstance(row, dict | str | bytes | Path) or not isinstance(row, Iterable)


def _written(value: Any, name: str, number: int, part: str) -> str:
    """A part of an example as text; the words and tags of lists are joined by spaces."""
    place = f"`{name}`: the {part} of example {number}"
    if _is_missing(value):
        raise UserError(f"{place} is missing (None or NaN).")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{place} is not UTF-8: {error}.") from None
    word = str | int | np.integer if part == "tags" else str
    if isinstance(value, list | tuple | np.ndarray) and all(isinstance(one, word) for one in value):
        return " ".join(map(str, value))
    if not isinstance(value, str | Path | int | float | np.generic):
        raise UserError(f"{place} must be text or a number. Received: {type(value).__name__}.")
    return str(value)


def _listed(value: Any, name: str, number: int, part: str) -> list[str] | str:
    """Several labels or numbers as a list; what is no list as text."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    value = sorted(value) if isinstance(value, set | frozenset) else value
    if isinstance(value, list | tuple):
        return [_written(one, name, number, part) for one in value]
    return _written(value, name, number, part)


def _json_line(texts: Mapping[str, Any], name: str, number: int) -> str:
    line = json.dumps(texts, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"`{name}`: example {number} has a character that is half of a surrogate pair."
        ) from None
    return line


def _is_missing(value: Any) -> bool:
    """Whether a value is `None`, NaN, or what pandas has for a missing one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
