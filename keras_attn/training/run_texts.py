"""The texts of a run, which `--data`, `--valid` and `--test` name."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keras_attn.data import Pairs, hold_out
from keras_attn.data.files import joined_names
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading
from keras_attn.data.reading.tables import LinesTable
from keras_attn.data.split import count_different, taken
from keras_attn.training.run_settings import DataSettings
from keras_attn.validation import UserError, require

Texts = TypeVar("Texts", "Lines", Pairs)

MAX_DROPPED = "--set data.max_dropped="
"""The option of `train` for the fraction of rows that may be left out, but for the number."""


@dataclasses.dataclass(frozen=True)
class Lines:
    """Texts without targets.

    Attributes:
        texts: The texts.
        name: Where they come from, for messages.
        skipped: Number of malformed lines that were left out.
        notes: Lines for users about how the files were read.
    """

    texts: Sequence[str]
    name: str
    skipped: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)


def reported(pairs: Texts, what: str = "lines") -> Texts:
    """Prints how files were read and how many malformed lines were left out; returns the pairs."""
    for note in pairs.notes:
        print(note)
    if pairs.skipped:
        print(f"{pairs.name}: {pairs.skipped:,} malformed {what} left out.")
    return pairs


def require_few_malformed(part: Any, most: float, option: str, held_out: int = 0) -> None:
    """Raises if too many of the rows of a part of the data were left out as malformed.

    Args:
        part: The texts that were read.
        most: Greatest fraction of the rows that may be malformed.
        option: The beginning of the option that sets it.
        held_out: Number of rows that were read with the part, and are in another one.

    Raises:
        UserError: There are more.
    """
    malformed = getattr(part, "skipped", 0)
    rows = len(part) + malformed + held_out
    if malformed > most * rows:
        needed = math.ceil(100 * malformed / rows) / 100
        raise UserError(
            f"{part.name}: of {rows:,} rows {malformed:,} are malformed, which is more than "
            f"`data.max_dropped` allows ({most:.0%}). Mend them or set their encoding "
            "(`keras-attn data` says what is wrong), or set a larger `data.max_dropped` "
            f"({option}{needed:g})."
        )


def read_lines(paths: Iterable[str | Path], data: DataSettings, role: str = "text") -> Lines:
    """Reads files of one text a line, or a column of tables.

    Args:
        paths: Files, patterns or folders; empty lines of files that are no tables are left out.
        data: How they are read.
        role: What the texts are called in `columns`.

    Returns:
        The lines of all files.

    Raises:
        UserError: A file is missing or malformed, or has no text.
    """
    files = expanded(list(paths))
    reading = Reading(joined_names(files), Form(data.columns, data.encoding, data.skip_bad_lines))
    rows = reading.tables(files, (role,), plain=LinesTable)
    (texts,) = reading.columns(rows, (role,), files, data.kept_in)
    return reported(Lines(texts, reading.name, reading.skipped, reading.remarks))


def hold_out_pairs(
    pairs: Pairs, data: DataSettings, seed: int, stratify: bool | Sequence[str] = False
) -> tuple[Pairs, Pairs]:
    """Divides pairs by their sources into those to train on and those to validate on.

    Args:
        pairs: The pairs.
        data: How many are held out.
        seed: Determines which.
        stratify: Whether labels are as frequent in both parts (see `hold_out`).

    Raises:
        UserError: There are too few sources.
    """
    there = count_different(pairs.sources)
    count = _count_to_hold_out(data, there, "different sources", pairs.name)
    rest, held = hold_out(pairs, count, seed, stratify)
    found = count_different(held.sources)
    if found < count:
        print(
            f"{pairs.name}: {found:,} texts are held out in place of {count:,}, since one of each "
            "label stays in the training."
        )
    return rest, held


def hold_out_lines(lines: Lines, data: DataSettings, seed: int) -> tuple[Lines, Lines]:
    """Divides lines into those to train on and those to validate on.

    Raises:
        UserError: There are too few lines.
    """
    count = _count_to_hold_out(data, len(lines), "lines", lines.name)
    require(
        count < len(lines),
        f"Fewer than all {len(lines):,} lines of {lines.name} must be held out.",
        hold_out=count,
    )
    chosen = np.random.default_rng(seed).choice(len(lines), count, replace=False)
    held = np.zeros(len(lines), bool)
    held[chosen] = True
    rest, validation = (taken(lines.texts, np.flatnonzero(part)) for part in (~held, held))
    name = lines.name
    return Lines(rest, f"{name} (rest)", lines.skipped), Lines(validation, f"{name} (held out)")


def _count_to_hold_out(data: DataSettings, there: int, what: str, name: str) -> int:
    require(
        there > 1 or data.hold_out is not None,
        f"{name} has too few {what} to hold out some for validation: name a set with `--valid`.",
        found=there,
    )
    # Of few a larger part: one or two would choose by chance.
    return data.hold_out or min(2000, max(1, there // 20, min(50, there // 5)))
