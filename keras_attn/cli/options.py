"""Options that several commands share, and those whose help shows their default."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from keras_attn.renamed import renamed
from keras_attn.validation import UserError


def add_value(
    parser: argparse._ActionsContainer, name: str, default: Any, help: str, metavar: str = "N"
) -> None:
    """Adds an option of its default's type, which the help shows.

    Args:
        parser: The parser, or a group of it.
        name: Name of the option.
        default: Its default; a list for an option that takes several values.
        help: Its help, to which the default is added unless it names one.
        metavar: Name of the value in the help.
    """
    defaults = default if isinstance(default, list) else [default]
    shown = " ".join(format(value, "g" if isinstance(value, float) else "") for value in defaults)
    parser.add_argument(
        name,
        type=type(defaults[0]),
        nargs="+" if defaults is default else None,
        default=default,
        metavar=metavar,
        help=help if "(default: " in help else f"{help} (default: {shown})",
    )


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
    for part in reversed(place):
        value = {part: value}
    return value


def add_ensemble_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--ensemble`, which `opened` reads."""
    parser.add_argument(
        "--ensemble",
        nargs="+",
        metavar="MODEL",
        help="average the probabilities of the model and of these, at each step of a search",
    )


def opened(options: argparse.Namespace) -> Any:
    """Opens the model of a command, or makes an ensemble of it and of others.

    Raises:
        UserError: A model is missing, or they do not belong together.
    """
    from keras_attn.tasks import Task, ensemble, open_task, task_folder

    if not options.ensemble:
        return open_task(options.model)
    return ensemble([Task.load(task_folder(path)) for path in (options.model, *options.ensemble)])


def output_file(path: str) -> Path:
    """Checks that a file can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: It is a folder, or the folder above is missing or cannot be written.
    """
    file = Path(path)
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"the file must be in a folder that exists and can be written to. Received: {path!r}"
        )
    return file


def picture_file(path: str) -> Path:
    """Checks that a PNG file can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: Its name does not end with .png, or see `output_file`.
    """
    file = output_file(path)
    if file.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"a picture must be FILE.png. Received: {path!r}")
    return file


def add_table_options(parser: argparse._ActionsContainer) -> None:
    """Adds the options that say how tables are read."""
    add = parser.add_argument
    add(
        "--columns",
        nargs="+",
        action=_Columns,
        metavar="PART=COLUMN",
        help="columns of tables, such as text=review label=stars: names, or numbers from 1 "
        "(default: those of usual names)",
    )
    add("--encoding", metavar="NAME", help="encoding of the files (default: UTF-8)")


def add_reading_options(parser: argparse.ArgumentParser, refuses: bool = True) -> None:
    """Adds the options that say how data files are read.

    Args:
        parser: The parser of a command.
        refuses: Whether the command refuses malformed lines without `--skip-bad-lines`.
    """
    add_table_options(parser)
    add = parser.add_argument
    add(
        "--label-separator",
        metavar="TEXT",
        help="what separates several labels or numbers of a text, such as '|'; lists need none",
    )
    if refuses:
        skip = "skip malformed lines and count them"
        add("--skip-bad-lines", action="store_true", default=None, help=skip)


class _Columns(argparse.Action):
    """Collects PART=COLUMN in a dict."""

    def __call__(self, parser, namespace, values, option_string=None):
        columns = {}
        for value in values:
            part, equals, column = value.partition("=")
            if not (part and equals and column):
                parser.error(f"argument --columns: expected PART=COLUMN, found {value!r}")
            if part in columns:
                parser.error(f"argument --columns: {part} is given twice")
            columns[part] = column
        setattr(namespace, self.dest, columns)
