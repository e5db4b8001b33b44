"""Cells with several labels or numbers."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_attn.data.reading.lines import excerpt, is_empty
from keras_attn.documents import parse_json
from keras_attn.validation import UserError

LARGEST = 3.4e38
"""The largest number that float32 holds, nearly."""

_LONGEST_LITERAL = 10_000

MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "\\n")
"""How missing values are written, in lower case."""

Found = tuple[Any, str | None]
"""What a cell has, and what was found in its place if it is malformed."""


def is_missing(cell: Any) -> bool:
    """Whether a cell is `None` or NaN."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def number_in(cell: Any) -> Found:
    """Reads a cell with a finite number, of the range of float32."""
    is_plain = not isinstance(cell, bool) and "_" not in str(cell)
    try:
        number = float(cell) if is_plain else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        return number, f"{excerpt(str(cell))} in place of a number"
    too_large = abs(number) > LARGEST
    return number, f"{excerpt(str(cell))}, too large for float32" if too_large else None


def listed(cell: Any) -> list | None:
    """The values of a cell that is a list, or JSON or Python of one; `None` for other cells."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = parse_json(cell, "a cell")
        except UserError:
            cell = _literal(cell.strip())
    return list(cell) if isinstance(cell, list | tuple) else None


def _literal(cell: str) -> Any:
    """What pandas wrote of a list into CSV, or else `None`."""
    try:
        return ast.literal_eval(cell) if len(cell) < _LONGEST_LITERAL else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _labels(cell: Any, separator: str | None) -> Found | None:
    """Reads a list of labels, or a text with a separator; `None` for another cell."""
    labels = listed(cell)
    if labels is None and separator is not None and isinstance(cell, str):
        labels = [label.strip() for label in cell.split(separator) if not is_empty(label)]
    if labels is None:
        return None
    wrong = [label for label in labels if not isinstance(label, str | int) or is_empty(str(label))]
    if wrong:
        shown = "a missing value" if is_missing(wrong[0]) else excerpt(repr(wrong[0]))
        return None, f"{shown} in place of a label"
    return tuple(dict.fromkeys(str(label).strip() for label in labels)), None


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
