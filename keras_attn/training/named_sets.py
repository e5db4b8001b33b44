"""Data that are named instead of read from files: data sets of packages, and generated ones."""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from keras_attn.data import (
    Pairs,
    load_cmudict,
    load_duplication,
    load_induction,
    load_listops,
    load_pathfinder,
    load_recall,
    load_selective_copying,
)
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.validation import UserError, require, require_one_of

CMUDICT = "cmudict"
LISTOPS = "listops"
_ALIKE = 0.8
_LARGEST = 10_000_000  # number behind a name, but for seeds
_NAME = re.compile(r"\w{1,40}(:[\w=,-]{0,200})?")


@dataclasses.dataclass(frozen=True)
class NamedSet:
    """Data that are named instead of read from files.

    Attributes:
        load: Returns the parts; its arguments can be set behind the name.
        settings: Arguments that settings `data` of the same name give.
        task: Name of the task that is learned from them.
        characters: Whether each character is a token, since their texts have no words.
    """

    load: Callable[..., Mapping[str, Pairs]]
    settings: tuple[str, ...] = ()
    task: str = ""
    characters: bool = False


DataSets = Mapping[str, NamedSet]

SETS_OF_PAIRS: DataSets = {
    CMUDICT: NamedSet(load_cmudict, ("stress",), "seq2seq"),
    LISTOPS: NamedSet(load_listops, (), "classification"),
    "pathfinder": NamedSet(load_pathfinder, (), "classification", characters=True),
}
TAGGED_SETS: DataSets = {
    name: NamedSet(load, (), "token_classification")
    for name, load in (
        ("recall", load_recall),
        ("induction", load_induction),
        ("selective_copying", load_selective_copying),
        ("duplication", load_duplication),
    )
}
SETS_OF_TEXTS: DataSets = {**SETS_OF_PAIRS, **TAGGED_SETS}


def named_set(
    sets: DataSets, paths: Sequence[str], replaced: Mapping[str, int] = MappingProxyType({})
) -> Callable[[DataSettings], Mapping[str, Pairs]] | None:
    """Finds data by their name.

    Args:
        sets: What there is, by name.
        paths: The name alone, or `NAME:ARGUMENT=VALUE,…` with whole numbers.
        replaced: Arguments in place of those behind the name.

    Returns:
        Function that returns the parts; `None` where the paths are others.

    Raises:
        UserError: There is no such argument, it is set twice, or the value is not a whole number of
            a usable size; or the name, which no file has, is known but not among `sets`.
    """
    name, has_arguments, given = paths[0].partition(":") if len(paths) == 1 else ("", "", "")
    if name not in sets:
        _refuse_other_names(sets, paths)
        return None
    found, values = sets[name], {}
    known = [one for one in inspect.signature(found.load).parameters if one not in found.settings]
    for part in given.split(",") if has_arguments else ():
        argument, _, value = part.partition("=")
        require(
            argument in known,
            f"--data {name} has no argument {argument!r}, but: {', '.join(known) or 'none'}.",
            data=paths[0],
        )
        require(
            value.isascii() and value.isdigit(),
            f"--data {name} takes whole numbers from 0 such as {name}:{argument}=100.",
            data=paths[0],
        )
        require(argument not in values, f"{argument} is set twice.", data=paths[0])
        values[argument] = int(value)
        require(
            argument == "seed" or values[argument] <= _LARGEST,
            f"{argument} must be at most {_LARGEST:,}.",
            data=paths[0],
        )
    values |= replaced

    def load(data: DataSettings) -> Mapping[str, Pairs]:
        if "seed" in known:
            print(f"Generating {paths[0]} …", flush=True)
        try:
            return found.load(**{one: getattr(data, one) for one in found.settings}, **values)
        except MemoryError:
            raise UserError(f"{paths[0]} does not fit into the memory.") from None

    return load


def check_settings_of_named(sets: DataSets, settings: RunSettings) -> None:
    """Raises for settings that named data cannot have.

    Args:
        sets: What there is, by name.
        settings: The settings of a run.

    Raises:
        UserError: Some is to be held out of parts that are fixed, or an image would be read as one
            word.
    """
    path, hold_out = settings.data.train[0], settings.data.hold_out
    require(
        hold_out is None or named_set(sets, settings.data.train) is None,
        f"`data.hold_out` has no meaning for {path}, whose parts are fixed.",
        hold_out=hold_out,
    )
    kind = settings.tokenizers.get("text", {}).get("kind")
    found = sets.get(path.partition(":")[0])
    require(
        settings.init is not None or found is None or not found.characters or kind == "characters",
        f"Each character of {path} is a pixel: set tokenizers.text.kind=characters, and "
        "data.max_source_length=1026 for whole images.",
        kind=kind,
    )


def _refuse_other_names(sets: DataSets, paths: Sequence[str]) -> None:
    """Raises for a path that is no file, but a name that is known elsewhere, or nearly one."""
    for path in filter(_NAME.fullmatch, paths):
        name, has_arguments, _ = path.partition(":")
        if Path(path).exists():
            continue
        if name in sets:
            raise UserError(f"{path} is data by itself, beside which nothing else is named.")
        if name in SETS_OF_TEXTS:
            raise UserError(f"{path} is data for --task {SETS_OF_TEXTS[name].task}.")
        if has_arguments and sets:
            require_one_of("data", name, sets)
        if near := difflib.get_close_matches(name, SETS_OF_TEXTS, 1, _ALIKE):
            raise UserError(f"{path}: no such file. Did you mean the data {near[0]}?")
