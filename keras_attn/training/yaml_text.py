"""YAML in which every key is there once."""

from typing import Any

import yaml
from yaml.nodes import MappingNode


class _Loader(yaml.SafeLoader):
    """The usual loader lets the last of two equal keys count, and says nothing."""

    def compose_mapping_node(self, anchor: str | None) -> MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if (key.tag, str(key.value)) in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line} has the key {key.value!r} a second time")
            seen.add((key.tag, str(key.value)))
        return node


def load_yaml(text: str) -> Any:
    """The plain values that a text holds.

    Raises:
        YAMLError: It is no YAML, or a mapping has a key twice.
    """
    return yaml.load(text, _Loader)
