"""Examples of files, each checked."""

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import keras_attn
from keras_attn.data.reading.columns import Selection, select
from keras_attn.data.reading.content import content_digest, suffixes_of
from keras_attn.data.reading.delimited import TabSeparatedTable, row_names_hint
from keras_attn.data.reading.lines import SKIP_HINT, excerpt, is_empty
from keras_attn.data.reading.several import SEVERAL, is_missing, listed, number_in
from keras_attn.data.reading.table import Key, Record, Table
from keras_attn.data.reading.tables import open_table
from keras_attn.data.stored.cache import Cache
from keras_attn.data.stored.texts import stored_columns
from keras_attn.validation import UserError

_LOOKED_AT = 100  # rows that show whether malformed ones can be left out
_OF_NUMBERS = ("number", "score", "relevance", "start")
_MISTAKES = 3  # malformed rows that are shown
_CAUSE = re.compile("decoded|one word|a number|a date|R's row names|in place of")
_OTHER_FORM = (
    "Is the file of another form (name it *.csv, *.jsonl or *.conll), or are other columns meant "
    "(--columns)?"
)
_KINDS: dict[type, str] = {dict: "an object", bytes: "bytes", list: "a list"}


class Row(NamedTuple):
    """An example.

    Attributes:
        fields: Its parts; nothing if it is malformed.
        mistake: What is wrong with it, with its place, or `None`.
    """

    fields: tuple
    mistake: str | None = None


Mistake = Callable[..., str | None]
"""Describes what is wrong with the parts of an example, or returns `None`."""


@dataclasses.dataclass(frozen=True)
class Form:
    """How files of examples are read.

    Attributes:
        columns: Column of each part of an example, a name or a number from 1; looked for by
            default.
        encoding: Encoding of text files, UTF-8 by default.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        separator: What separates several labels or numbers in a cell, besides lists.
    """

    columns: Mapping[str, str | int] | None = None
    encoding: str | None = None
    skip_bad_lines: bool = False
    separator: str | None = None


@dataclasses.dataclass
class Reading:
    """The reading of files, and what it has found so far.

    Attributes:
        name: Name of what is read in messages.
        form: How it is read.
        skipped: Number of malformed rows that were left out.
        notes: Lines about what was chosen for the user.
        mistakes: What is wrong with the first of these rows.
    """

    name: str
    form: Form
    skipped: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)
    mistakes: list[str] = dataclasses.field(default_factory=list)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Lines for users: the notes, and the first malformed rows that were left out."""
        return (*self.notes, *(f"malformed: {mistake}" for mistake in self.mistakes))

    def tables(
        self,
        files: Iterable[str],
        roles: Sequence[str],
        first: Table | None = None,
        **options: Any,
    ) -> Iterator[Row]:
        """Yields the examples of files, one after the other (see `table_rows`).

        Args:
            files: The files.
            roles: The parts of an example.
            first: The first file, if it is open already.
            **options: Further arguments of `table_rows`.
        """
        for file in files:
            options["table"], first = first, None
            yield from table_rows(file, roles, self.form, notes=self.notes, **options)

    def good(self, rows: Iterable[Row]) -> Iterator[tuple]:
        """Yields the fields of well-formed rows, and refuses or counts the others.

        Raises:
            UserError: A row is malformed, or every row was left out.
        """
        some, rows = False, iter(rows)
        for fields, mistake in rows:
            if mistake is None:
                some = True
                yield fields
            elif self.form.skip_bad_lines:
                self.skip(mistake)
            else:
                raise UserError(f"{mistake}. {_hint(mistake, rows, some)}")
        if not some:
            self.refuse_nothing()

    def skip(self, mistake: str) -> None:
        """Counts a malformed row."""
        self.skipped += 1
        if len(self.mistakes) < _MISTAKES:
            self.mistakes.append(mistake)

    def refuse_nothing(self) -> NoReturn:
        """Raises because no row is left."""
        raise UserError(
            f"{self.name}: nothing is left because all {self.skipped:,} lines are malformed. "
            f"The first one: {self.mistakes[0]}.{_hint_of_form(self.mistakes[0])}"
            if self.skipped
            else f"{self.name}: there is no example."
        )

    def columns(
        self,
        rows: Iterable[Row],
        roles: Sequence[str],
        files: Sequence[str],
        cache: Cache | None,
        mistake: Mistake | None = None,
    ) -> Sequence[Sequence[str]]:
        """Reads the texts of well-formed rows.

        Args:
            rows: The rows.
            roles: The parts of an example.
            files: The files that the rows are read from.
            cache: Where the texts are kept; in memory if `None`, or if a file is a pipe.
            mistake: What the rows were checked by.

        Returns:
            The texts of each part.

        Raises:
            UserError: A row is malformed, or every row was left out.
        """
        good = self.good(rows)
        digests = [content_digest(file) for file in files] if cache is not None else [None]
        if cache is None or None in digests:
            columns: list[list[str]] = [[] for _ in roles]
            for fields in good:
                for column, text in zip(columns, fields, strict=True):
                    column.append(text)
            return columns

        def facts() -> dict[str, Any]:
            found = {"skipped": self.skipped, "notes": self.notes, "mistakes": self.mistakes}
            return {"files": list(files)} | found

        key = {
            "content": digests,
            "forms": [suffixes_of(file)[-1:] for file in files],
            "roles": list(roles),
            "reading": dataclasses.asdict(self.form),
            "check": getattr(mistake, "__name__", None),
            "version": keras_attn.__version__,
        }
        stored, found = stored_columns(cache, key, good, len(roles), facts)
        self.skipped = found["skipped"]
        self.notes = _of_files(found["notes"], found["files"], files)
        self.mistakes = _of_files(found.get("mistakes", []), found["files"], files)
        return stored


def _hint_of_form(mistake: str) -> str:
    """Asks whether the file is of another form, where a mistake does not say what is wrong."""
    return "" if _CAUSE.search(mistake) else f" {_OTHER_FORM}"


def _hint(first: str, rows: Iterator[Row], after_good: bool) -> str:
    """What to do about the first malformed row, in view of the next ones."""
    mistakes: list[str | None] = []
    with contextlib.suppress(UserError):  # of a later place, which is not the first mistake
        mistakes.extend(mistake for _, mistake in itertools.islice(rows, _LOOKED_AT))
    if not mistakes:
        return SKIP_HINT if after_good else "There is no other row."
    good = mistakes.count(None)
    if after_good or good > len(mistakes) / 2:
        bad = len(mistakes) - good
        more = f" Of the next {len(mistakes):,} rows {bad:,} cannot be read either."
        return SKIP_HINT + (more if bad else "")
    return f"Of the next {len(mistakes):,} rows {good or 'none'} can be read.{_hint_of_form(first)}"


def _of_files(lines: Iterable[str], before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Lines that begin with the names of files, under their names of now."""
    names = {
        f"{old}{end}": f"{new}{end}"
        for old, new in zip(before, now, strict=True)
        for end in (": ", ", ")
    }
    return [
        next(
            (new + line.removeprefix(old) for old, new in names.items() if line.startswith(old)),
            line,
        )
        for line in lines
    ]


def table_rows(
    path: str,
    roles: Sequence[str],
    form: Form,
    optional: Sequence[str] = (),
    plain: type[Table] = TabSeparatedTable,
    notes: list[str] | None = None,
    mistake: Mistake = lambda *parts: None,
    table: Table | None = None,
) -> Iterator[Row]:
    """Yields the examples of a file.

    Args:
        path: The file.
        roles: The parts of an example, from `keras_attn.data.reading.columns.ROLES`.
        form: How it is read.
        optional: Parts that a file may lack.
        plain: The form of a file that is not known by its name.
        notes: A list that gets a line about what was chosen for the user, if anything.
        mistake: Describes what is wrong with the parts of an example, or returns `None`.
        table: The file, if it is open already.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged, or it is not clear which
            columns are meant.
    """
    table = table or open_table(path, plain, form.encoding, form.skip_bad_lines)
    found, selection = select(table, roles, form.columns, optional)
    if notes is not None and selection.note:
        notes.append(f"{path}: {selection.note}")
    rows = table.after_header if selection.has_header else table.records
    has_lists = table.names is not None and "tags" not in found  # as JSON and Parquet may
    joined: dict[str, str] = {}  # a text by the part whose lists were made into texts
    for record in rows(selection.keys):
        row = _row(table, found, selection, record, form.separator)
        if has_lists:
            for role, key, field in zip(found, selection.keys, row.fields, strict=False):
                if isinstance(field, str) and isinstance(record.cells[key], list | tuple):
                    joined.setdefault(role, field)
        wrong = mistake(*row.fields) if row.mistake is None else None
        if wrong is not None:
            row = Row((), f"{table.place(record, selection.keys[-1])}: {wrong}")
        yield row
    if notes is not None:
        notes += [
            f"{path}: lists in place of a {role} are joined with spaces, as in {excerpt(text)}"
            for role, text in joined.items()
        ]
        if table.doubt is not None:
            notes.append(f"{path}: {table.doubt}")


def _row(
    table: Table,
    roles: tuple[str, ...],
    selection: Selection,
    record: Record,
    separator: str | None,
) -> Row:
    if record.mistake is not None:
        return Row((), f"{table.place(record)}: {record.mistake}")
    if isinstance(table, TabSeparatedTable) and len(record.cells) != selection.width:
        return Row((), _wrong_tabs(table, roles, selection, record))
    cells = [record.cells[key] for key in selection.keys]
    if "tags" in roles:
        lists = list(map(listed, cells))  # what pandas wrote of lists into CSV
        cells = cells if None in lists else lists
    fields = []
    for role, key, cell in zip(roles, selection.keys, cells, strict=True):
        if role in _OF_NUMBERS and separator != ",":
            cell = table.plain_number(cell)
        value, problem = _value(role, cell, separator)
        if problem is None and "tags" in roles and isinstance(cell, list):
            split = [word for word in map(str, cell) if len(word.split()) != 1]
            problem = f"{excerpt(split[0])} in place of a word" if split else None
        if problem is not None:
            return Row((), _wrong_cell(table, roles, selection, record, role, key, problem))
        fields.append(value)
    return Row(tuple(fields))


def _value(role: str, cell: Any, separator: str | None) -> tuple[Any, str | None]:
    """The part of an example that a cell has, or what was found in its place."""
    if role in SEVERAL and (found := SEVERAL[role](cell, separator)) is not None:
        return found
    if isinstance(cell, str):
        text = cell
    elif is_missing(cell):
        text = ""
    elif isinstance(cell, list | tuple) and all(isinstance(one, _words(role)) for one in cell):
        text = " ".join(map(str, cell))
    elif isinstance(cell, bool | int | float):
        text = str(cell)
    elif role == "tags" and isinstance(cell, list):
        return (
            None,
            "a list whose items are no tags (spans need a tag for each word in their place)",
        )
    else:
        return None, _KINDS.get(type(cell), f"a {type(cell).__name__}")
    if is_empty(text):
        return None, f"an empty {role}"
    if "\0" in text:
        return None, "a NUL character"
    if role == "label":
        text = text.strip()
    return number_in(text) if role in _OF_NUMBERS else (text, None)


def _words(role: str) -> Any:
    """What the items of a list may be."""
    return str | int if role == "tags" else str


def _wrong_tabs(table: Table, roles: tuple[str, ...], selection: Selection, record: Record) -> str:
    count, width = len(record.cells), selection.width or len(roles)
    line = "\t".join(record.cells)
    found = f"{count - 1} tabs" if count > 1 else "no tab"
    if "tags" in roles and (is_empty(line) or " " not in line):
        found += " (a word a line is read from *.conll)"
    # Where a tab is missing, or the first one that is too many.
    column = len(line) + 1 if count < width else len("\t".join(record.cells[:width])) + 1
    place = f"{table.place(record)}, column {column}"
    hint = row_names_hint(record.cells, width)
    if record.line == 1 and count > width:
        last = max(at for at, cell in enumerate(record.cells, 1) if at <= width or cell.strip())
        columns = " ".join(f"{role}={at}" for at, role in enumerate(roles, last - width + 1))
        hint = f" (of more columns, say which to read: --columns {columns})"
    if width == len(roles):
        expected = "<TAB>".join(roles)
        return f"{place}: expected {expected}, found {found} in {excerpt(line)}{hint}"
    return f"{place}: expected {width - 1} tabs as in the first line, found {found}{hint}"


def _wrong_cell(
    table: Table,
    roles: tuple[str, ...],
    selection: Selection,
    record: Record,
    role: str,
    key: Key,
    problem: str,
) -> str:
    place = table.place(record, key)
    one = role if role.endswith("s") else f"a {role}"
    if isinstance(table, TabSeparatedTable):
        expected = "<TAB>".join(roles) if selection.width == len(roles) else one
        shown = excerpt("\t".join(record.cells))
        return f"{place}: expected {expected}, found {problem} in {shown}"
    return f"{place}: expected {one}, found {problem}"
