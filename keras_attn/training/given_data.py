"""Data in memory, written to the files that runs read."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.files import write_text
from keras_attn.validation import UserError, require

_FORMS = {
    1: "texts without targets: a list of texts, or one column of a table",
    2: "pairs: a list of (source, target), a tuple of two lists, or two columns of a table",
}


def written_data(
    data: Any,
    folder: Path,
    name: str,
    columns: str | Sequence[str] | None = None,
    of_files: bool = False,
    parts: int | None = None,
) -> list[str]:
    """Writes data to a file, unless they are files already.

    Tabs and line breaks within a text become spaces, and a line says how many texts had some.

    Args:
        data: A path or the name of a data set; a list of `pathlib.Path`; a list of texts, of pairs
            or of longer tuples; a tuple of two lists, sources and targets; a pandas DataFrame, a
            `datasets.Dataset` or a mapping of columns.
        folder: Where the file is written.
        name: Name of the file, without its ending.
        columns: Names of the columns to take, in their order; needed for a table.
        of_files: Whether the first part of each example is the path of a file.
        parts: Number of parts that each example must have at least; exactly one for 1.

    Returns:
        A value of the setting `data.train`.

    Raises:
        UserError: The data are of another form, empty, or lack a column or a value.
    """
    if isinstance(data, str | Path):
        return [str(data)]
    rows = list(_rows(data, columns))
    require(bool(rows), f"`{name}` must have at least one example.", rows=0)
    if all(len(row) == 1 and isinstance(row[0], Path) for row in rows):
        return [str(path) for (path,) in rows]
    width = len(rows[0])
    require(
        parts is None or (width == 1 if parts == 1 else width >= parts),
        f"`{name}` must be {_FORMS.get(parts, '')}.",
        parts=width,
    )
    lines, changed = [], 0
    for number, row in enumerate(rows):
        require(
            len(row) == width,
            f"All examples of `{name}` must have {width} parts.",
            row=number,
            parts=len(row),
        )
        for place, part in enumerate(row):
            require(
                not _is_missing(part),
                f"`{name}` has a missing value (None or NaN).",
                example=number,
                part=place,
            )
        row = [_written(part, name, number) for part in row]
        if of_files:
            row[0] = str(Path(row[0]).absolute())
        texts = [" ".join(" ".join(text.split("\t")).splitlines()) for text in row]
        changed += texts != row
        lines.append("\t".join(texts))
    if changed:
        print(f"{name}: in {changed:,} examples tabs and line breaks became spaces.")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{'tsv' if width > 1 else 'txt'}"
    write_text(path, "\n".join(lines) + "\n")
    return [str(path)]


def _rows(data: Any, columns: str | Sequence[str] | None) -> Iterable[tuple]:
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is None and hasattr(data, "keys") and not hasattr(data, "iloc"):  # but for a Series
        names = data.keys()
    if names is not None:
        return zip(*_columns(data, list(names), columns), strict=True)
    require(
        columns is None,
        "`columns` can be given for a table only.",
        data=type(data).__name__,
        columns=columns,
    )
    if isinstance(data, tuple) and len(data) == 2 and not any(map(_is_text, data)):
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
            "Data must be a path, a list of texts or pairs, a tuple of two lists, or a table. "
            f"Received: {type(data).__name__}."
        )
    return ((row,) if _is_one(row) else tuple(row) for row in data)


def _is_one(row: Any) -> bool:
    """Whether an example has one part: a text, or what is refused later."""
    return isinstance(row, dict) or not isinstance(row, Iterable) or _is_text(row)


def _written(part: Any, name: str, number: int) -> str:
    """A part of an example as text; the words and tags of lists are joined by spaces."""
    if isinstance(part, bytes):
        try:
            return part.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"`{name}`: example {number} is not UTF-8: {error}.") from None
    if isinstance(part, list | tuple | np.ndarray) and all(isinstance(one, str) for one in part):
        return " ".join(part)
    if not isinstance(part, str | Path | int | float | np.generic):
        raise UserError(
            f"`{name}` must have texts or numbers. Received: example={number}, "
            f"{type(part).__name__}."
        )
    return str(part)


def _is_missing(value: Any) -> bool:
    """Whether a value is `None`, NaN, or what pandas has for a missing one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes | Path)


def _columns(data: Any, names: list, columns: str | Sequence[str] | None) -> list[list]:
    wanted = [columns] if isinstance(columns, str) else list(columns or ())
    require(
        bool(wanted) and set(wanted) <= set(names),
        "`columns` must name the columns to read, such as the text and the label.",
        columns=columns,
        table=[str(name) for name in names],
    )
    return [list(data[name]) for name in wanted]
