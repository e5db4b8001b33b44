"""Adds the pages of the reference that are made from the code."""

import argparse
import dataclasses
import importlib
import inspect
from collections.abc import Iterable

import yaml
from mkdocs.structure.files import File, Files

from keras_attn.cli.parser import make_parser
from keras_attn.layers.configuration import documented_fields
from keras_attn.models import PRESETS
from keras_attn.recipes import read_recipe, recipe_names
from keras_attn.tasks import DecodingSettings
from keras_attn.training.distillation_settings import DistillationSettings
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.settings import TrainingSettings

# The folders with a page of public names, from what users import most.
FOLDERS = (
    "layers",
    "models",
    "tasks",
    "generation",
    "tokenizers",
    "data",
    "training",
    "evaluation",
    "convert",
    "export",
    "tuning",
    "visualization",
    "serving",
    "ops",
)


def on_files(files: Files, config) -> Files:
    """Adds the pages before links are checked."""
    pages = {f"api/{folder}": api_page(folder) for folder in FOLDERS}
    pages |= {
        "command_line": command_line_page(),
        "settings": settings_page(),
        "presets": presets_page(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def api_page(folder: str) -> str:
    """The public names of a folder: a table of what each is, then their docstrings."""
    module = importlib.import_module(f"keras_attn.{folder}")
    names = sorted(module.__all__, key=str.lower)
    rows = [
        (f"[`{name}`][{_path(module, name)}]", _summary(getattr(module, name))) for name in names
    ]
    entries = [_entry(module, name) for name in names]
    start = inspect.cleandoc(module.__doc__ or "")
    return "\n\n".join(
        [f"# keras_attn.{folder}", start, table(("name", "what it is"), rows), *entries]
    )


def _entry(module, name: str) -> str:
    entry = f"::: {_path(module, name)}"
    if getattr(getattr(module, name), "_is_protocol", False):  # has no constructor
        entry += "\n    options:\n      merge_init_into_class: false"
    return entry


def _path(module, name: str) -> str:
    """A path at which the name is found without the module's `__getattr__`."""
    home = getattr(getattr(module, name), "__module__", module.__name__)
    has_modules_name = home == f"{module.__name__}.{name}"
    where = module.__name__ if name in vars(module) and not has_modules_name else home
    return f"{where}.{name}"


def command_line_page() -> str:
    """Every command with its help, as the terminal shows it, and its options as a table."""
    parser, commands = make_parser()
    parts = ["# Command line", inspect.cleandoc(parser.description or "")]
    for name, command in commands.items():
        parts += _command(f"keras-attn {name}", command, level=2)
    return "\n\n".join(parts)


def _command(title: str, parser: argparse.ArgumentParser, level: int) -> list[str]:
    parts = [f"{'#' * level} {title}", parser.description or ""]
    rows = []
    inner: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner = list(action.choices.items())
        elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            rows.append((f"`{_invocation(action)}`", _help(action)))
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    parts.append(f"```text\n{usage}\n```")
    if rows:
        parts.append(table(("argument", "meaning"), rows))
    if parser.epilog:
        parts.append(f"```text\n{inspect.cleandoc(parser.epilog)}\n```")
    for name, sub in inner:
        parts += _command(f"{title} {name}", sub, level + 1)
    return parts


def _invocation(action: argparse.Action) -> str:
    metavar = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    shown = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if not action.option_strings:
        return shown
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {shown}"


def _help(action: argparse.Action) -> str:
    default = action.default
    values = {"default": default, "dest": action.dest, "metavar": action.metavar, "prog": ""}
    text = (action.help or "") % values
    return text.replace("see `keras-attn train --help`", "see [train](#keras-attn-train)")


def settings_page() -> str:
    """The sections of run.yaml: each setting with its type, default and meaning."""
    sections = {
        "Sections": RunSettings,
        "data": DataSettings,
        "training": TrainingSettings,
        "decoding": DecodingSettings,
        "distillation": DistillationSettings,
    }
    parts = [
        "# Settings: run.yaml",
        "`keras-attn train` writes all settings of a run into `run.yaml`, and reads such a file by "
        "`--config`. `--set SECTION.NAME=VALUE` changes one of them.",
    ]
    for section, settings in sections.items():
        parts += [f"## {section}", _summary(settings), _fields(settings)]
    return "\n\n".join(parts)


def _fields(settings: type) -> str:
    meanings = documented_fields(settings)
    rows = []
    for field in dataclasses.fields(settings):
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        shown = "" if default is dataclasses.MISSING else f"`{default!r}`"
        kind = inspect.formatannotation(field.type).replace(" | None", " or None")
        rows.append((f"`{field.name}`", f"`{kind}`", shown, _meaning(meanings[field.name])))
    return table(("setting", "type", "default", "meaning"), rows)


def _meaning(entry: str) -> str:
    return " ".join(entry.partition(": ")[2].split())


def presets_page() -> str:
    """Every preset with its sizes, its paper and the recipes that train it."""
    rows = [
        (
            f"`{preset.name}`",
            f"[`{preset.family}`][keras_attn.models.{preset.family}]",
            preset.description,
            preset.paper,
            ", ".join(f"`{task}`" for task in preset.tasks),
            "<br>".join(f"{name} {value}" for name, value in preset.config.items()),
        )
        for preset in PRESETS.values()
    ]
    header = ("preset", "model", "what it is", "paper", "tasks", "sizes")
    parts = [
        "# Presets and recipes",
        "A preset holds the sizes of a model, which is randomly initialized. A recipe holds the "
        "settings of its training; `keras-attn presets --recipe NAME` prints it.",
        table(header, rows),
        "## Recipes",
    ]
    for name in recipe_names():
        text = yaml.safe_dump(read_recipe(name), sort_keys=False)
        parts.append(f'??? note "{name}"\n\n    ```yaml\n' + _indented(text) + "    ```")
    return "\n\n".join(parts)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )


def _summary(thing) -> str:
    return inspect.cleandoc(inspect.getdoc(thing) or "").partition("\n\n")[0]


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
