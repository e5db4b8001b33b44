"""Contents of files of examples: rows, lengths, labels, double rows, and rows in common."""

import dataclasses
import statistics
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.data.files import Pairs, aligned_rows, are_aligned, joined_names
from keras_attn.data.images import mistake_of_image
from keras_attn.data.labelled_images import files_in_folders, table_in
from keras_attn.data.questions import squad_rows
from keras_attn.data.reading.columns import (
    has_header,
    looks_like_names,
    require_column,
    select,
)
from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.lines import excerpt
from keras_attn.data.reading.objects import JsonTable
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Mistake, Reading, Row
from keras_attn.data.reading.several import MISSING, number_in
from keras_attn.data.reading.table import Record, Table, shown_names
from keras_attn.data.reading.tables import LinesTable, open_table
from keras_attn.data.split import rows_with_several
from keras_attn.validation import UserError, require

ONE_WORD = "every text is one word; sentences with a word a line are read from *.conll"
"""What is odd about texts with tags if none has more words."""

_FEW = 50  # different values of a column that are counted one by one
_BINS = 8
_NAMED = 5  # labels
_LOOKED_AT = 100  # rows
_DIGITS = 15  # of a number that float64 holds exactly
_TRUTHS = {"true": "1", "false": "0"}


@dataclasses.dataclass
class Column:
    """What a column holds.

    Attributes:
        name: Its name.
        characters: Number of characters of each value.
        words: Number of words of each value, separated by white space.
        keys: A checksum of each value.
        values: How often each value occurs, or `None` if there are many.
        has_several: Whether a value consists of several labels or numbers.
        empty: Number of empty values.
        with_nul: Number of values with a NUL character.
        example: The first value that is not empty.
    """

    name: str
    characters: array = dataclasses.field(default_factory=lambda: array("L"))
    words: array = dataclasses.field(default_factory=lambda: array("L"))
    keys: array = dataclasses.field(default_factory=lambda: array("Q"))
    values: Counter | None = dataclasses.field(default_factory=Counter)
    has_several: bool = False
    empty: int = 0
    with_nul: int = 0
    example: str = ""

    def add(self, cell: Any) -> None:
        """Counts a value; several labels or numbers each for itself in `values`."""
        value = _text(cell)
        self.characters.append(len(value))
        self.words.append(len(value.split()))
        self.keys.append(_key(value))
        if not value.strip():
            self.empty += 1
        self.with_nul += "\0" in value
        self.example = self.example or value.strip()
        self.has_several |= isinstance(cell, tuple)
        if self.values is not None:
            self.values.update(map(_text, cell) if isinstance(cell, tuple) else [value])
            if len(self.values) > _FEW:
                self.values = None

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found: dict[str, Any] = {
            "empty": self.empty,
            "with_nul": self.with_nul,
            "different": len(np.unique(np.asarray(self.keys))),
            "example": self.example,
            "characters": lengths_summary(self.characters),
            "words": lengths_summary(self.words),
        }
        if self.values is not None:
            if self.has_several:
                found["different"] = len(self.values)
            found["values"] = dict(self.values.most_common())
        return found


@dataclasses.dataclass
class Overview:
    """What files of one part of the data hold.

    Attributes:
        reading: Their name, notes about them and their malformed rows.
        columns: Their columns.
        rows: A checksum of each row.
        inputs: A checksum of each row without its last column.
    """

    reading: Reading
    columns: list[Column]
    rows: array = dataclasses.field(default_factory=lambda: array("Q"))
    inputs: array = dataclasses.field(default_factory=lambda: array("Q"))

    def add(self, values: Sequence[Any]) -> None:
        """Counts a row."""
        for column, value in zip(self.columns, values, strict=True):
            column.add(value)
        texts = list(map(_text, values))
        self.rows.append(_key("\0".join(texts)))
        self.inputs.append(_key("\0".join(texts[:-1])))

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        several = np.zeros(0, int)
        if len(self.columns) > 1:
            several = rows_with_several(np.asarray(self.inputs), np.asarray(self.rows))
        return {
            "rows": len(self.rows),
            "malformed": self.reading.skipped,
            "mistakes": self.reading.mistakes,
            "double": len(self.rows) - len(np.unique(np.asarray(self.rows))),
            "contradicted": len(several),
            "contradicted_row": int(several[0]) + 1 if len(several) else None,
            "columns": {column.name: column.summary() for column in self.columns},
        }

    def unknown_to(self, other: "Overview") -> dict[str, int]:
        """How often the last column has each value that the last one of other data lacks."""
        values, known = self.columns[-1].values, other.columns[-1].values
        if values is None or known is None:
            return {}  # too many to be labels
        return {value: count for value, count in values.most_common() if value not in known}

    def common_with(self, other: "Overview") -> int:
        """Number of rows whose first column occurs in that of other data."""
        keys = np.asarray(self.columns[0].keys)
        return int(np.isin(keys, np.asarray(other.columns[0].keys)).sum())


def overview(
    paths: Sequence[str],
    form: Form,
    roles: Sequence[str] = (),
    optional: Sequence[str] = (),
    mistake: Mistake = lambda *parts: None,
) -> Overview:
    """Reads files and counts what they hold; malformed rows are counted, not refused.

    Args:
        paths: Tables, or two files whose lines correspond.
        form: How they are read.
        roles: The parts of an example; by default all columns are read.
        optional: Parts that a table may lack.
        mistake: Describes what is wrong with the parts of an example, or returns `None`.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged, or it is not clear which columns
            are meant.
    """
    form = dataclasses.replace(form, skip_bad_lines=True)
    if tuple(roles) == ("file", "label"):
        table = table_in(Path(paths[0]))
        if table is None:
            return _folders(paths[0], form, roles)
        paths = [str(table)]
    files = expanded(paths)
    reading = Reading(joined_names(files), form)
    if len(roles) != 1 and are_aligned(paths, files):
        parts = tuple(roles) if len(roles) == 2 else ("source", "target")
        rows = aligned_rows(files, form, mistake, parts[1])
    elif roles:
        plain: type[Table] = LinesTable if len(roles) == 1 else TabSeparatedTable
        whole: Iterable[Row] = ()
        if roles[0] == "question":
            whole, first = squad_rows(files, form.columns, form.encoding)
        else:
            first = open_table(files[0], plain, form.encoding, skip_bad_lines=True)
        if first is None:
            parts = tuple(roles)
            rows = (row._replace(fields=row.fields[: len(parts)]) for row in whole)
        else:
            parts, _ = select(first, roles, form.columns, optional)
            rows = reading.tables(files, parts, first, plain=plain, mistake=mistake)
    else:
        return _all_columns(files, reading)
    found = Overview(reading, [Column(name) for name in parts])
    for row in reading.good(rows):
        found.add(row)
    return found


def overview_of_pairs(pairs: Pairs, names: Sequence[str]) -> Overview:
    """Counts what pairs hold that are read or generated already.

    Args:
        pairs: The pairs.
        names: Names of the source and of the target, or of the source alone.
    """
    found = Overview(Reading(pairs.name, Form()), [Column(name) for name in names])
    for row in zip(*(pairs.sources, pairs.targets)[: len(names)], strict=True):
        found.add(row)
    return found


def _folders(path: str, form: Form, roles: Sequence[str]) -> Overview:
    """Counts images in folders that are named after their labels."""
    found = Overview(Reading(path, form), [Column(name) for name in roles])
    for file, label in files_in_folders(Path(path)):
        mistake = mistake_of_image(file)
        if mistake is None:
            found.add([str(file), label])
        else:
            found.reading.skip(mistake)
    if not found.rows:
        found.reading.refuse_nothing()
    return found


def _all_columns(files: Sequence[str], reading: Reading) -> Overview:
    found, form = None, reading.form
    for file in files:
        table = open_table(file, TabSeparatedTable, form.encoding, skip_bad_lines=True)
        names, records = _records(table, reading.notes)
        found = found or Overview(reading, [Column(name) for name in names])
        before = [column.name for column in found.columns]
        require(
            names == before,
            f"{file} has other columns than {files[0]}: look at them one by one.",
            columns=names,
            before=before,
        )
        for record in records:
            cells = record.cells
            if isinstance(cells, dict):
                cells = [cells.get(name) for name in names]
            mistake = record.mistake
            if mistake is None and len(cells) != len(names):
                mistake = f"{len(cells)} columns in place of {len(names)}"
            if mistake is None:
                found.add([_text(cell) for cell in cells])
            else:
                reading.skip(f"{table.place(record)}: {mistake}")
    if found is None:
        raise UserError("Data are read from at least one file.")
    if not found.rows:
        reading.refuse_nothing()
    return found


def _records(table: Table, notes: list[str]) -> tuple[list[str], Iterator[Record]]:
    """Names of all columns of a table, and its rows."""
    if table.names is not None:
        for name in table.names:
            require_column(table, name, table.names)
        # An object may lack what others have; Parquet reads the columns that are named.
        return table.names, table.records([] if isinstance(table, JsonTable) else table.names)
    width = table.width if table.first is None else len(table.first)
    if isinstance(table, TabSeparatedTable) and (rows := table.sample(_LOOKED_AT)):
        width = statistics.mode(map(len, rows))  # the first line may be a comment
    is_header = has_header(table)
    # CSV usually has them, and they are no numbers.
    is_usual = table.expects_header and all(number_in(cell)[1] for cell in table.first or ())
    if not is_header and (is_usual or looks_like_names(table)):
        is_header = True
        shown = shown_names(table.first or ())
        notes.append(f"{table.path}: the first line is taken for names of columns: {shown}.")
    if is_header:
        names = [cell.strip() for cell in table.first or ()]
        unique = [
            name if names.count(name) == 1 else f"{name} (column {number})"
            for number, name in enumerate(names, 1)
        ]
        return unique, table.after_header(range(width))
    return [str(number) for number in range(1, width + 1)], table.records(range(width))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):  # several labels or numbers
        return ", ".join(map(_text, value))
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _key(text: str) -> int:
    data = text.encode(errors="replace")
    return zlib.crc32(data) << 32 | zlib.adler32(data)


def alike(labels: Iterable[str]) -> list[list[str]]:
    """Groups of labels that differ by case, white space or Unicode alone, or are equal numbers.

    Examples:
        >>> alike(["pos", "Pos", "neg", "1", "1.0", "true"])
        [['pos', 'Pos'], ['1', '1.0', 'true']]
    """
    groups: dict[str | float, list[str]] = {}
    for label in labels:
        folded = unicodedata.normalize("NFKC", label).casefold()
        plain = "".join(one for one in "".join(folded.split()) if unicodedata.category(one) != "Cf")
        number, mistake = number_in(_TRUTHS.get(plain, plain))
        exact = mistake is None and len(plain) <= _DIGITS
        groups.setdefault(number if exact else plain, []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def doubts(counts: Mapping[str, int], contradicted: int = 0, example: str = "") -> list[str]:
    """What is odd about labels, a line each.

    Args:
        counts: Number of each label.
        contradicted: Number of texts that occur with several labels.
        example: One of them.
    """
    lines = []
    rare = [label for label, count in counts.items() if count == 1]
    if 0 < len(rare) < len(counts):
        names = ", ".join(map(excerpt, rare[:_NAMED])) + (" …" if len(rare) > _NAMED else "")
        occur = "label occurs" if len(rare) == 1 else "labels occur"
        lines.append(f"{len(rare):,} {occur} only once: {names}")
    if contradicted:
        occur = "text occurs" if contradicted == 1 else "texts occur"
        lines.append(
            f"{contradicted:,} {occur} more than once, with different labels, such as {example}"
        )
    for group in alike(counts):
        # What cannot be seen is escaped.
        differ = len({unicodedata.normalize("NFKC", label) for label in group}) == len(group)
        shown = map(repr if differ else ascii, group)
        lines.append(f"labels that look alike: {', '.join(shown)}")
    missing = [label for label in counts if label.casefold() in MISSING]
    if missing:
        lines.append(f"labels that look like missing values: {', '.join(map(excerpt, missing))}")
    return lines


def lengths_summary(lengths: Sequence[int] | np.ndarray) -> dict[str, Any]:
    """Shortest, median, 95th percentile and longest of lengths, and a histogram up to the 99th."""
    found = np.asarray(lengths)
    if not len(found):
        return {}
    least, most = int(found.min()), int(np.percentile(found, 99))
    width = (most - least) // _BINS + 1
    edges = np.arange(least, most + width + 1, width)
    # The last bin holds what is longer too.
    counts, _ = np.histogram(np.minimum(found, most), edges)
    return {
        "shortest": int(found.min()),
        "median": int(np.median(found)),
        "95%": int(np.percentile(found, 95)),
        "longest": int(found.max()),
        "histogram": [
            [int(low), int(high), int(count)]
            for low, high, count in zip(
                edges[:-1], [*edges[1:-1], found.max()], counts, strict=True
            )
        ],
    }
