"""Checks of the fields of settings, by their types and ranges."""

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from keras_attn.validation import require, require_positive


def check_types(settings: Any) -> None:
    """Converts the fields of a dataclass to their types.

    Args:
        settings: Settings, frozen or not, whose fields are numbers, texts, truth values or lists of
            texts; each may be optional.

    Raises:
        UserError: A value is of another type, or no finite number.
    """
    for field in dataclasses.fields(settings):
        value = _checked(field.name, field.type, getattr(settings, field.name))
        object.__setattr__(settings, field.name, value)


def check_numbers(settings: Any, positive: Iterable[str], above_zero: Iterable[str] = ()) -> None:
    """Raises for numbers of a dataclass that are out of range; `None` is in range.

    Args:
        settings: The dataclass.
        positive: Names of whole numbers above 0.
        above_zero: Names of numbers above 0.

    Raises:
        UserError: A number is out of range.
    """
    given = {name: value for name, value in vars(settings).items() if value is not None}
    require_positive(**{name: given[name] for name in positive if name in given})
    for name in above_zero:
        value = given.get(name)
        require(value is None or value > 0, f"`{name}` must be above 0.", **{name: value})


def _checked(name: str, annotation: Any, value: Any) -> Any:
    """`value` as the annotated type, or a UserError."""
    optional = isinstance(annotation, types.UnionType)
    kind = typing.get_args(annotation)[0] if optional else annotation
    if value is None and optional:
        return None
    if name == "jit" and isinstance(value, bool):  # YAML reads a bare on or off as a boolean
        return "on" if value else "off"
    if typing.get_origin(kind) is list:
        return as_texts(name, value)
    if typing.get_origin(kind) is dict:
        require(isinstance(value, Mapping), f"`{name}` must hold named values.", **{name: value})
        return dict(value)
    if kind is float:
        value = _as_float(value)
    right = isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    empty = " or nothing" if optional else ""
    require(right, f"`{name}` must be {words[kind]}{empty}.", **{name: value})
    require(
        kind is not int or abs(value) < 2**63, f"`{name}` must be below 2**63.", **{name: value}
    )
    finite = kind is not float or math.isfinite(value)
    require(finite, f"`{name}` must be a finite number.", **{name: value})
    return value


def as_texts(name: str, value: Any) -> list[str]:
    """One text or several as a list."""
    values = [value] if isinstance(value, str) else value
    right = isinstance(values, list | tuple) and all(isinstance(text, str) for text in values)
    require(right, f"`{name}` must be a text or a list of texts.", **{name: value})
    return list(values)


def _as_float(value: Any) -> Any:
    """Whole numbers, and texts such as 1e-9 that YAML leaves as text, as floats."""
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
    except OverflowError:
        return math.inf  # which is refused as such
