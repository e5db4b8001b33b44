"""One voice for users' mistakes: what was expected, and what was received."""

import contextlib
import difflib
import numbers
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

_MOST_SHOWN = 1_000


class UserError(ValueError):
    """A mistake of the caller, told in one line.

    The command line prints the line and ends with status 2; from Python it is a `ValueError`.
    """

    # Keras adds pages of arguments to what layers raise, but for what it has added them to.
    _keras_call_info_injected = True


def require(condition: bool, expectation: str, /, **received: Any) -> None:
    """Raises unless `condition` holds.

    Args:
        condition: What must be true.
        expectation: One sentence that says what was expected, with its full stop.
        **received: The values that decide it, printed after the sentence.

    Raises:
        UserError: `condition` is false.
    """
    if not condition:
        values = ", ".join(f"{name}={_shown(value)}" for name, value in received.items())
        raise UserError(f"{expectation} Received: {values}." if received else expectation)


def require_positive(**received: Any) -> None:
    """Raises unless every value is a whole number above 0 (numbers named by keyword)."""
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
    """Whether a text is the number of a port, 1 to 65535."""
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
    """Tells in one line what a class says of values that it does not know.

    Args:
        what: What is made of a user's values.

    Raises:
        UserError: The class refused a value.
    """
    try:
        yield
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(f"The {what} cannot be made: {error}.") from error


def _shown(value: Any) -> str:
    """How messages write a value, which may be as long as a file."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no numbers of more than 4,300 digits
        return "a number of too many digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def asserted(message: str) -> str:
    """What an assertion inside a graph says, without TensorFlow's words around it.

    Args:
        message: TensorFlow's message of an assertion of one sentence and the values that it saw:
            `assertion failed: [Sentence:] [1] [2] …`, or outside of a graph `b'Sentence:'`, each
            in a line of its own.

    Returns:
        The sentence and the values, or the message's first line where it is that of something else.
    """
    found = re.search(r"assertion failed: ((\[[^\[\]]*\] ?)+)", message)
    if found:
        return " ".join(re.findall(r"\[([^\[\]]*)\]", found[1]))
    found = re.search(r"b'([^'\n]*:)'((\n-?\d+)+)\s*$", message)
    if found:
        return " ".join([found[1], *found[2].split()])
    return message.strip().partition("\n")[0]
