"""Settings given as `--set NAME=VALUE`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from keras_attn.renamed import renamed
from keras_attn.validation import UserError


def add_set_option(parser: argparse.ArgumentParser, help: str) -> None:
    """Adds `--set`, whose values `setting` turns into settings."""
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=help)


def add_old_option(parser: argparse.ArgumentParser, old: str, new: str, **options: Any) -> None:
    """Adds the old name of an option; using it prints the new one."""

    class Renamed(argparse.Action):
        def __call__(self, parser, namespace, values, option_string=None):
            print(f"keras-attn: {renamed(old, new)}", file=sys.stderr)
            setattr(namespace, self.dest, values)

    name = new.removeprefix("--").replace("-", "_")
    parser.add_argument(
        old, dest=name, default=argparse.SUPPRESS, action=Renamed, help=argparse.SUPPRESS, **options
    )


def setting(assignment: str) -> dict[str, Any]:
    """Turns "training.warmup_steps=500" into nested settings; values are YAML.

    Raises:
        UserError: It has no name or no value, or the value is not valid YAML.
    """
    from keras_attn.documents import parse_yaml

    name, equals, text = assignment.partition("=")
    place = name.strip().split(".")
    if not equals or not all(place):
        raise UserError(f"--set takes NAME=VALUE, such as training.seed=3. Received: {assignment}")
    value = parse_yaml(text, f"--set {assignment[:100]}: the value")
    settings: dict[str, Any] = {}
    put(settings, place, value)
    return settings


def put(settings: dict[str, Any], place: Sequence[str], value: Any) -> None:
    """Sets a value in nested settings, at the names of its sections and its own."""
    *sections, name = place
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[name] = value
