"""Options of the parts of a `tokenizer.json`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from keras_attn.tokenizers.pipeline.patterns import Pattern, literal, parse_pattern
from keras_attn.validation import UserError, require

_Made = TypeVar("_Made")


def made_of(
    name: str, part: Any, makers: Mapping[str, Callable[[Mapping[str, Any]], _Made]]
) -> _Made:
    """Makes a part of a pipeline from its description.

    Args:
        name: Name of the part in errors, such as "normalizer".
        part: The description, with a `type`.
        makers: What makes the part, by type.

    Raises:
        UserError: The type is not supported, or an option is not.
    """
    kind = part.get("type") if isinstance(part, Mapping) else part
    if not isinstance(kind, str) or kind not in makers:
        known = ", ".join(makers)
        raise UserError(f"`{name}` must be one of {known}. Received: {name}={kind!r}.")
    try:
        return makers[kind](part)
    except UserError as error:
        message = str(error)
        raise UserError(message if message.startswith("`") else f"`{name}`: {message}") from None


def read_options(part: Mapping[str, Any], **defaults: Any) -> list[Any]:
    """Reads the options of a part in the order of their defaults.

    Args:
        part: The description.
        **defaults: Values of missing options. A boolean's value must be one too.

    Raises:
        UserError: An option is unknown, or not a boolean where one is expected.
    """
    kind = part["type"]
    for key, value in part.items():
        require(
            key in defaults or key == "type", f"`{kind}.{key}` is not supported.", **{key: value}
        )
    found = {key: part.get(key, default) for key, default in defaults.items()}
    for key, default in defaults.items():
        fits = not isinstance(default, bool) or isinstance(found[key], bool)
        require(fits, f"`{kind}.{key}` must be true or false.", **{key: found[key]})
    return list(found.values())


def require_option(part: Mapping[str, Any], **values: Any) -> None:
    """Refuses options with unsupported values.

    Args:
        part: The description.
        **values: The supported values of each, the first that of a missing one.

    Raises:
        UserError: There is another value.
    """
    for key, choices in values.items():
        found = part.get(key, choices[0])
        listed = " or ".join(repr(choice) for choice in choices)
        fits = found in choices
        require(fits, f"`{part['type']}.{key}` must be {listed}.", **{key: found})


def read_pattern(part: Mapping[str, Any]) -> Pattern:
    """Reads the `pattern` of a part: a text, or a regular expression.

    Raises:
        UserError: It is neither, or not supported.
    """
    pattern: Any = part.get("pattern")
    [(kind, text)] = pattern.items() if isinstance(pattern, Mapping) else [(None, pattern)]
    known = kind in ("Regex", "String") and isinstance(text, str) and bool(text)
    require(known, f"`{part['type']}.pattern` must be a Regex or a String.", pattern=pattern)
    return parse_pattern(text) if kind == "Regex" else literal(text)
