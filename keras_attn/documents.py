"""Safe reading of JSON and YAML.

Documents that are too large or nested too deeply, have duplicate keys, or contain excessively large
numbers are refused with a message of one line.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from keras_attn.limits import DEPTH, YAML_BYTES, YAML_NODES
from keras_attn.reading import read_text
from keras_attn.validation import UserError, require

_TAG = "tag:yaml.org,2002:"
_PLAIN = {_TAG + kind for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}
_KEYS = {_TAG + kind for kind in ("str", "merge")}
_MOST_BITS = 128  # of an integer, as in the states of random generators


def read_json(path: str | Path) -> Any:
    """Reads a JSON file.

    Raises:
        UserError: It is missing, cannot be read or is not valid JSON.
    """
    return parse_json(read_text(path), str(path))


def read_json_object(path: str | Path) -> dict[str, Any]:
    """Reads a JSON file that contains an object.

    Raises:
        UserError: See `read_json`, or it contains something else.
    """
    content = read_json(path)
    require(isinstance(content, dict), f"{path}: a JSON object is expected.")
    return content


def parse_json(text: str, name: str) -> Any:
    """Parses JSON.

    Args:
        text: The text to parse.
        name: Name of the text in messages.

    Raises:
        UserError: It is not valid JSON, has duplicate keys, or is nested too deeply.
    """
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise UserError(f"{name}: the JSON is nested too deeply.") from None
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{name}: valid JSON is expected: {error}.") from None
    except ValueError:
        raise UserError(f"{name}: a number has too many digits.") from None
    # Brackets inside texts are counted too; they only lead to a more careful check.
    if text.count("[") + text.count("{") > DEPTH.value:
        _check_depth(content, name)
    return content


def read_yaml(path: str | Path) -> Any:
    """Reads a YAML file.

    Raises:
        UserError: It is missing, cannot be read or is not valid YAML.
    """
    return parse_yaml(read_text(path, YAML_BYTES), str(path))


def parse_yaml(text: str, name: str) -> Any:
    """Parses YAML to plain values.

    Args:
        text: The text to parse.
        name: Name of the text in messages.

    Raises:
        UserError: It is not valid YAML, has duplicate keys, is nested too deeply, or its aliases
            expand to too many values.
    """
    YAML_BYTES.check(len(text.encode("utf-8", "replace")), name)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                _check_nodes(node, name)
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise UserError(f"{name}: the YAML is nested too deeply.") from None
    except UserError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{name} is not valid YAML: {reason}") from None


class _Loader(yaml.SafeLoader):
    """Checks duplicate keys; the usual loader silently uses the last one."""

    def compose_mapping_node(self, anchor: str | None) -> MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if (key.tag, str(key.value)) in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line} has the duplicate key {key.value!r}")
            seen.add((key.tag, str(key.value)))
        return node

    def construct_yaml_float(self, node: ScalarNode) -> float:
        self._require_decimal(node)
        return super().construct_yaml_float(node)

    def _require_decimal(self, node: ScalarNode) -> None:
        if ":" in node.value:  # base 60, which is not what users mean by a time
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"line {line} has {node.value[:50]}, which needs quotes")

    def construct_yaml_int(self, node: ScalarNode) -> int:
        self._require_decimal(node)
        try:
            value = super().construct_yaml_int(node)
        except ValueError:  # Python's own limit
            value = 1 << _MOST_BITS + 1
        if abs(value).bit_length() > _MOST_BITS:
            raise yaml.YAMLError(
                f"line {node.start_mark.line + 1} has a number with too many digits",
            )
        return value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise UserError(f"duplicate key {twice!r}.")
    return content


def _check_depth(content: Any, name: str) -> None:
    level, depth = [content], 0
    while level:
        level = [item for value in level for item in _items(value)]
        depth += bool(level)
        DEPTH.check(depth, name)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_kind(node: Node, name: str) -> None:
    """Refuses values without a JSON equivalent: dates, bytes, sets, and keys that are not text."""
    keys = [key for key, _ in node.value] if isinstance(node, MappingNode) else []
    for found, allowed, what in (
        *((key, _KEYS, "a key of type") for key in keys),
        (node, _PLAIN, "a value of type"),
    ):
        if found.tag not in allowed:
            kind = found.tag.removeprefix(_TAG)[:50]
            raise UserError(
                f"{name}: line {found.start_mark.line + 1} has {what} {kind!r}, which is not "
                "supported. Use quotes if it is text."
            )


def _check_nodes(root: Node, name: str) -> None:
    """Counts the values and levels of a document with all aliases expanded."""
    known: dict[int, tuple[int, int] | None] = {}

    def size_and_depth(node: Node, above: int) -> tuple[int, int]:
        if id(node) in known:
            require(known[id(node)] is not None, f"{name}: an alias must not contain itself.")
            return known[id(node)]
        known[id(node)] = None
        _check_kind(node, name)
        parts = [] if isinstance(node, ScalarNode) else node.value
        if isinstance(node, MappingNode):
            parts = [part for pair in parts for part in pair]
        below = [size_and_depth(part, above + 1) for part in parts]
        size = 1 + sum(size for size, _ in below)
        depth = max((1 + depth for _, depth in below), default=0)
        YAML_NODES.check(size, name)
        DEPTH.check(above + depth, name)
        known[id(node)] = size, depth
        return known[id(node)]

    size_and_depth(root, 0)
