"""The options of all commands, assembled without importing Keras or TensorFlow."""

import argparse
import difflib
import importlib
import importlib.metadata
import platform
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import keras_attn
from keras_attn.validation import UserError

PROGRAM = "keras-attn"
_LONG_WORD = re.compile(r"(\S{200})\S+")
# Each is a module of this package.
COMMANDS = (
    *("presets", "data", "train", "report", "tune", "evaluate", "predict", "visualize"),
    *("export", "verify", "serve", "convert", "average", "benchmark"),
)

_DESCRIPTION = "Train a Transformer on text, measure it, and serve it with TensorFlow Serving."
_EPILOG = """\
from words to a model that can be served:
  keras-attn train --preset g2p_small --data cmudict --out runs/g2p
  keras-attn predict runs/g2p hello world
  keras-attn export runs/g2p exported/g2p
  keras-attn verify exported/g2p
  keras-attn serve g2p=exported/g2p

`keras-attn COMMAND --help` describes a command, with examples. A command exits with status 0 on
success, and with 2 on a mistake in its arguments.
"""


class _Parser(argparse.ArgumentParser):
    """A parser that reports mistakes in one line, with the nearest valid word."""

    def error(self, message: str) -> NoReturn:
        message = _LONG_WORD.sub(r"\1…", message)
        raise UserError(f"{message} (see `{self.prog} --help`)")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        name = "/".join(action.option_strings) or action.metavar or action.dest
        self.error(f"{name}: {value!r} is none of {', '.join(choices)}{_hint(value, choices)}")


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples, and shows options in wide columns."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=30, width=100)


class _ShowVersion(argparse.Action):
    def __call__(self, parser, *_):
        print(f"{PROGRAM} {keras_attn.__version__} ({', '.join(_versions())})")
        parser.exit()


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses a command line.

    Args:
        arguments: Arguments after the program's name; from `sys.argv` by default.

    Returns:
        The options; `run` is the function to call with them, `arguments` the parsed arguments.

    Raises:
        UserError: An unknown command or option, or an invalid value.
        SystemExit: Help or the version was printed.
    """
    parser, commands = make_parser()
    options, rest = parser.parse_known_args(arguments)
    if "command" not in options:
        names = ", ".join(commands)
        parser.error(f"a command is needed: {names}")
    # Texts after an option, which argparse does not parse.
    if rest and "texts" in options and not any(text.startswith("-") for text in rest):
        options.texts += rest
    elif rest:
        known = options.parser._option_string_actions
        word = next((text for text in rest if text.startswith("-")), rest[0])
        options.parser.error(f"unknown argument {word!r}{_hint(word, known)}")
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    return options


def make_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """Returns the parser of all commands, and the parser of each command by its name."""
    parser = _Parser(PROGRAM, description=_DESCRIPTION, epilog=_EPILOG, formatter_class=_Layout)
    parser.add_argument(
        "--version",
        nargs=0,
        action=_ShowVersion,
        help="show the versions of Python, Keras and TensorFlow, and exit",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    commands = {}
    for name in COMMANDS:
        module = importlib.import_module(f"keras_attn.cli.{name}")
        summary, _, page = (module.__doc__ or "").strip().partition(".\n\n")
        commands[name] = subparsers.add_parser(
            name,
            help=summary[0].lower() + summary[1:],
            description=f"{summary}.",
            epilog=page,
            formatter_class=_Layout,
            allow_abbrev=False,
        )
        commands[name].set_defaults(command=name, run=module.run, parser=commands[name])
        module.add_arguments(commands[name])
    return parser, commands


def _hint(word: str, choices) -> str:
    near = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _versions() -> list[str]:
    versions = [f"Python {platform.python_version()}"]
    for name, package in (("Keras", "keras"), ("TensorFlow", "tensorflow")):
        try:
            versions.append(f"{name} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return versions
