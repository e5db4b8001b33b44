"""Cells with several labels or numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_attn.data.reading.lines import excerpt, is_empty
from keras_attn.documents import parse_json
from keras_attn.validation import UserError

Found = tuple[Any, str | None]
"""What a cell has, and what was found in its place if it is malformed."""


def is_missing(cell: Any) -> bool:
    """Whether a cell is `None` or NaN."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def number_in(cell: Any) -> Found:
    """Reads a cell with a finite number."""
    try:
        number = math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        number = math.nan
    return number, None if math.isfinite(number) else f"{excerpt(str(cell))} in place of a number"


def listed(cell: Any) -> list | None:
    """The values of a cell that is a list, or JSON of one; `None` for other cells."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = parse_json(cell, "a cell")
        except UserError:
            return None
    return list(cell) if isinstance(cell, list | tuple) else None


def _labels(cell: Any, separator: str | None) -> Found | None:
    """Reads a list of labels, or a text with a separator; `None` for another cell."""
    labels = listed(cell)
    if labels is None and separator is not None and isinstance(cell, str):
        labels = [] if is_empty(cell) else [label.strip() for label in cell.split(separator)]
    if labels is None:
        return None
    wrong = [label for label in labels if not isinstance(label, str | int) or is_empty(str(label))]
    if wrong:
        return None, f"{excerpt(repr(wrong[0]))} in place of a label"
    return tuple(dict.fromkeys(map(str, labels))), None


def _numbers(cell: Any, separator: str | None) -> Found:
    """Reads a cell with one number or more."""
    values = listed(cell)
    if values is None:
        has_several = separator is not None and isinstance(cell, str)
        values = cell.split(separator) if has_several else [cell]
    if is_missing(cell) or not values or values == [""]:
        return None, "no number"
    found: Sequence[Found] = [number_in(value) for value in values]
    problem = next((problem for _, problem in found if problem is not None), None)
    return tuple(number for number, _ in found), problem


SEVERAL: Mapping[str, Callable[[Any, str | None], Found | None]] = {
    "label": _labels,
    "number": _numbers,
}
"""Readers of the parts of examples that may have several values, tuples."""
