"""Errors about users' mistakes: the expectation and the received values."""

import contextlib
import difflib
import numbers
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

_MOST_SHOWN = 1_000


class UserError(ValueError):
    """A mistake of the caller, described in one line.

    The command line prints the line and exits with status 2; in Python it is a `ValueError`.
    """

    # Keras adds pages of arguments to errors of layers unless they have this attribute.
    _keras_call_info_injected = True


def require(condition: bool, expectation: str, /, **received: Any) -> None:
    """Raises unless `condition` holds.

    Args:
        condition: The condition.
        expectation: One sentence that describes the expectation, with a period.
        **received: The relevant values, printed after the sentence.

    Raises:
        UserError: `condition` is false.
    """
    if not condition:
        values = ", ".join(f"{name}={_shown(value)}" for name, value in received.items())
        raise UserError(f"{expectation} Received: {values}." if received else expectation)


def require_positive(**received: Any) -> None:
    """Raises unless every value is an integer above 0."""
    for name, value in received.items():
        require(
            is_integer(value) and value > 0,
            f"`{name}` must be a positive integer.",
            **{name: value},
        )
        require(value < 2**63, f"`{name}` must be less than 2**63.", **{name: value})


def is_integer(value: object) -> TypeGuard[int]:
    """Returns whether a value is an integer, of Python or NumPy, and not a boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[float]:
    """Returns whether a value is a real number, of Python or NumPy, and not a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_port(text: str) -> bool:
    """Returns whether a text is the number of a port, 1 to 65535."""
    return text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 2**16


def require_rate(**received: Any) -> None:
    """Raises unless every value is a number in [0, 1), as dropout rates are."""
    for name, value in received.items():
        require(
            is_real(value) and 0 <= value < 1,
            f"`{name}` must be a number in [0, 1).",
            **{name: value},
        )


def require_one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raises unless `value` is among `choices`; suggests the nearest name."""
    choices = list(choices)
    if value in choices:
        return
    written = value if isinstance(value, str) else _shown(value)
    near = difflib.get_close_matches(written[:100], [str(choice) for choice in choices], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(repr(choice) for choice in choices)
    raise UserError(f"`{name}` must be one of {listed}.{hint} Received: {name}={_shown(value)}.")


@contextlib.contextmanager
def making(what: str) -> Iterator[None]:
    """Converts errors of a constructor about invalid values to a `UserError`.

    Args:
        what: Name of the constructed object in messages.

    Raises:
        UserError: The constructor refused a value.
    """
    try:
        yield
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(f"The {what} cannot be made: {error}.") from error


def _shown(value: Any) -> str:
    """A value as text for messages, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print numbers of more than 4,300 digits
        return "a number with too many digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def asserted(message: str) -> str:
    """Extracts the message of an assertion inside a graph from TensorFlow's message.

    Args:
        message: TensorFlow's message, which contains a sentence and values as
            `assertion failed: [Sentence:] [1] [2] …`, or outside of a graph as `b'Sentence:'` and
            a line for each value.

    Returns:
        The sentence and the values, or the first line of another message.
    """
    found = re.search(r"assertion failed: ((\[[^\[\]]*\] ?)+)", message)
    if found:
        return " ".join(re.findall(r"\[([^\[\]]*)\]", found[1]))
    found = re.search(r"b'([^'\n]*:)'((\n-?\d+)+)\s*$", message)
    if found:
        return " ".join([found[1], *found[2].split()])
    return message.strip().partition("\n")[0]
