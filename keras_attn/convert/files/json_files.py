"""JSON files of a checkpoint folder."""

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_attn.checkpoints import require_values
from keras_attn.documents import read_json, read_json_object
from keras_attn.validation import UserError, require, require_one_of


def read_optional_object(path: Path) -> dict[str, Any]:
    """Reads a JSON object; returns an empty one if there is no file."""
    return read_json_object(path) if path.is_file() else {}


def read_list(path: Path) -> list[Any]:
    """Reads a JSON list.

    Raises:
        UserError: The file is missing, not JSON or not a list.
    """
    content = read_json(path)
    require(isinstance(content, list), f"{path}: a JSON list is expected.")
    return content


@contextlib.contextmanager
def named_in_errors(path: Path, keys: Mapping[str, str] | None = None) -> Iterator[None]:
    """Adds the name of a file to errors raised inside.

    Args:
        path: The file.
        keys: Its keys by the names of our arguments, which they replace in messages.
    """
    try:
        yield
    except UserError as error:
        keys = keys or {}
        names = re.compile(r"(?<=`)\w+(?=`)|\b\w+(?==)")  # `name`, and name=value
        message = names.sub(lambda name: keys.get(name[0], name[0]), str(error))
        message = message.removeprefix(f"{path}: ")  # of an error that was named inside
        raise UserError(f"{path}: {message}") from None


def require_known(path: Path, content: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses unknown keys.

    Raises:
        UserError: There is an unknown key.
    """
    for key, value in content.items():
        require(key in known, f"{path}: `{key}` is not supported.", **{key: value})


def require_choice(
    path: Path, content: Mapping[str, Any], key: str, choices: Iterable[Any], default: Any = None
) -> Any:
    """Reads an option that has one of some values.

    Args:
        path: The file, for error messages.
        content: Its content.
        key: The option's key, which may be missing.
        choices: The supported values.
        default: The value where the key is missing.

    Raises:
        UserError: There is another value.
    """
    value = content.get(key, default)
    with named_in_errors(path):
        require_one_of(key, value, choices)
    return value


def require_tokens(path: Path, config: Mapping[str, Any], tokens: Mapping[str, str]) -> None:
    """Refuses other special tokens, which are texts or descriptions of added tokens.

    Args:
        path: The file, for error messages.
        config: Its content.
        tokens: The only supported token by key; a key may be missing.

    Raises:
        UserError: There is another token.
    """
    found = {key: token_content(config[key]) for key in tokens if key in config}
    require_values(path, found, **tokens)


def token_content(token: Any) -> Any:
    """The text of a special token, which may be described as an added token."""
    return token.get("content") if isinstance(token, dict) else token


def tokens_of_ids(path: Path, ids: Any) -> list[str]:
    """Orders a vocabulary.

    Args:
        path: The file, for error messages.
        ids: Tokens with their ids.

    Raises:
        UserError: The ids are not 0, 1, 2 and so on, each once.
    """
    whole = isinstance(ids, dict) and sorted(ids.values()) == list(range(len(ids)))
    require(whole, f"{path}: the ids of the vocabulary must be 0, 1, 2 …, each once.")
    return sorted(ids, key=ids.__getitem__)
