"""Tables of all forms: tab-separated, CSV, JSON lines, Parquet, CoNLL columns, lines of text."""

import abc
import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from keras_attn.data.reading.content import COMPRESSIONS, is_remote, opened
from keras_attn.data.reading.lines import BadLine, excerpt, is_empty, iterate_lines
from keras_attn.documents import parse_json
from keras_attn.limits import FILE_BYTES, LINE_BYTES
from keras_attn.validation import UserError, require

Key = int | str
"""A column: its index where a file has no names of columns, or else its name."""

_DELIMITERS = ",;\t|"
_LOOKED_AT = 100  # rows that show whether fields are quoted, and what objects have
_SHOWN = 8
_CSV_ERRORS = {
    "new-line character": "a carriage return (CR) outside quotes; lines must end with LF or CRLF",
    "unexpected end of data": "a quote begins a field, and no quote ends it",
    "expected after": "text after the quote that ends a field; a quote within quotes is doubled",
    "field larger": "a field that is too long; perhaps no quote ends it",
}
_UNDECODABLE = "found a character that cannot be decoded"


class Record(NamedTuple):
    """A row of a table.

    Attributes:
        line: Number of its line or row, from 1.
        cells: Its values by key: a list, or a dict if the form has names of columns.
        mistake: What is wrong with it, or `None`.
    """

    line: int
    cells: Any
    mistake: str | None = None


class Lines:
    """The lines of a file, read once; the first ones can be looked at before.

    Args:
        path: The file.
        skip_bad_lines: Whether lines that cannot be decoded are `BadLine`s instead of errors.
        encoding: The encoding, UTF-8 by default.
    """

    def __init__(self, path: str, skip_bad_lines: bool = False, encoding: str | None = None):
        self._rest = iterate_lines(path, skip_bad_lines, encoding)
        self._seen: list[str] = []

    def peek(self, count: int) -> list[str]:
        """The first lines, as many as there are up to `count`."""
        self._seen += itertools.islice(self._rest, max(count - len(self._seen), 0))
        return self._seen[:count]

    def drop(self) -> None:
        """Leaves out the first line."""
        self.peek(1)
        del self._seen[0]

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self._seen, self._rest)


class Table(abc.ABC):
    """The rows of a file, read once.

    Args:
        path: The file.
        lines: Its lines.
    """

    unit: str = "line"
    """What is counted in messages."""

    names: list[str] | None = None
    """Names of the columns, if the form has them in any case."""

    first: list[str] | None = None
    """The first row, if it may hold the names of the columns."""

    expects_header: bool = False
    """Whether the first row usually holds them."""

    width: int = 0
    """Number of columns of a table of sentences."""

    def __init__(self, path: str, lines: Lines):
        self.path = path
        self._lines = lines

    def sample(self, most: int) -> list[list[str]]:
        """The first rows, at most some, if the first one may hold names; else nothing."""
        return []

    @abc.abstractmethod
    def records(self, keys: Sequence[Key]) -> Iterator[Record]:
        """Yields the rows, the first one included.

        Args:
            keys: The columns that are needed.
        """

    def place(self, record: Record, key: Key | None = None) -> str:
        """The beginning of a message about a row, or about one of its cells."""
        where = f"{self.path}, {self.unit} {record.line}"
        if key is None:
            return where
        return f"{where}, column {key + 1 if isinstance(key, int) else repr(key)}"


class DelimitedTable(Table):
    """CSV: fields in quotes may have line breaks, and an empty line between rows has no meaning.

    After a row that a quote makes malformed, the next one begins on the next line. A first line
    such as `sep=;` names the delimiter, as Excel writes it.

    Args:
        path: The file.
        lines: Its lines.
        delimiter: The delimiter; by default that of comma, semicolon, tab and bar that makes the
            most fields of the first line.
    """

    expects_header = True

    def __init__(self, path, lines, delimiter: str | None = None):
        super().__init__(path, lines)
        (start, *_) = lines.peek(1)
        self._before = 0  # lines that are left out
        if named := re.fullmatch('"?sep=(.)"?', start):
            lines.drop()
            self._before, delimiter = 1, named[1]
            start = next(iter(lines.peek(1)), "")
        self._delimiter = delimiter or max(_DELIMITERS, key=lambda one: _count_fields(start, one))
        rows = self._rows()
        seen = list(itertools.islice(rows, 1))
        require(bool(seen), f"{path}: the file has no row.")
        self.first = list(seen[0].cells)
        self._seen, self._rest = seen, rows

    def sample(self, most):
        self._seen += itertools.islice(self._rest, max(most - len(self._seen), 0))
        return [record.cells for record in self._seen[:most] if record.mistake is None]

    def records(self, keys):
        for record in itertools.chain(self._seen, self._rest):
            found, width = len(record.cells), len(self.first)
            if record.mistake is None and found != width:
                mistake = f"expected {width} fields as in the first line, found {found} in "
                mistake += excerpt(self._delimiter.join(record.cells))
                record = record._replace(mistake=mistake)
            yield record

    def _rows(self) -> Iterator[Record]:
        csv.field_size_limit(LINE_BYTES.value)
        lines = iter(self._lines)
        row: list[str] = []  # the lines of the row that is read
        again: list[str] = []  # lines to be read once more, the next one at the end

        def with_ends() -> Iterator[str]:
            for line in itertools.chain(iter(lambda: again.pop() if again else None, None), lines):
                row.append(line)
                yield line + "\n"

        def reader() -> Iterator[list[str]]:
            return csv.reader(with_ends(), delimiter=self._delimiter, strict=True)

        rows, number = reader(), self._before
        while True:
            row.clear()
            cells, mistake = [], None
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                mistake = f"malformed CSV: {_explained(error)}"
                again.extend(reversed(row[1:]))
                del row[1:]
                rows = reader()
            if any(isinstance(line, BadLine) for line in row):
                mistake = _UNDECODABLE
            if cells or mistake:
                yield Record(number + 1, cells, mistake)
            number += len(row)


class QuotedTabSeparatedTable(DelimitedTable):
    """Tab-separated text in which every field is in quotes."""

    expects_header = False

    def __init__(self, path, lines):
        super().__init__(path, lines, "\t")


class TabSeparatedTable(Table):
    """Lines of fields with tabs between them; quotes belong to the text."""

    def __init__(self, path, lines):
        super().__init__(path, lines)
        self.first = lines.peek(1)[0].split("\t")

    def sample(self, most):
        return [line.split("\t") for line in self._lines.peek(most)]

    def records(self, keys):
        for number, line in enumerate(self._lines, 1):
            mistake = _UNDECODABLE if isinstance(line, BadLine) else None
            yield Record(number, line.split("\t"), mistake)

    def place(self, record, key=None):
        if key is None:
            return super().place(record)
        column = sum(len(cell) + 1 for cell in record.cells[:key]) + 1
        return f"{super().place(record)}, column {column}"


class LinesTable(Table):
    """Lines that are texts, tabs included; empty ones, which separate texts, are left out."""

    def __init__(self, path, lines):
        super().__init__(path, lines)
        self.names = ["text"]

    def records(self, keys):
        for number, line in enumerate(self._lines, 1):
            if not is_empty(line):
                mistake = _UNDECODABLE if isinstance(line, BadLine) else None
                yield Record(number, {"text": line}, mistake)


class JsonTable(Table):
    """JSON: an object a line, or a list of objects."""

    def __init__(self, path, lines):
        super().__init__(path, lines)
        (start, *_) = lines.peek(1)
        is_list = start.lstrip().startswith("[")
        rows = self._of_list() if is_list else self._of_lines()
        seen = list(itertools.islice(rows, _LOOKED_AT))
        require(bool(seen), f"{path}: the file has no row.")
        # An object may lack what others have.
        self.names = [*dict.fromkeys(name for record in seen for name in record.cells)]
        if len(seen) == 1:
            _refuse_wrapped(path, seen[0].cells)
        if not self.names and seen[0].mistake is not None:
            raise UserError(f"{self.place(seen[0])}: {seen[0].mistake}.")
        self._all = itertools.chain(seen, rows)

    def records(self, keys):
        for record in self._all:
            missing = [key for key in keys if key not in record.cells]
            if record.mistake is None and missing:
                found = ", ".join(map(repr, list(record.cells)[:_SHOWN])) or "none"
                mistake = f"expected the column {missing[0]!r}, found {found}"
                record = record._replace(mistake=mistake)
            yield record

    def _of_lines(self) -> Iterator[Record]:
        for number, line in enumerate(self._lines, 1):
            if isinstance(line, BadLine):
                yield Record(number, {}, _UNDECODABLE)
            elif not is_empty(line):  # which has no meaning, as at the end of many files
                try:
                    # Only an escape can be half of a surrogate pair.
                    yield _json_record(number, parse_json(line, ""), "\\u" in line)
                except UserError as error:
                    yield Record(
                        number, {}, f"expected a JSON object in each line: {_reason(error)}"
                    )

    def _of_list(self) -> Iterator[Record]:
        self.unit = "row"
        lines, length = [], 0
        for line in self._lines:
            lines.append(line)
            length += len(line)
            FILE_BYTES.check(length, self.path)
        try:
            content = parse_json("\n".join(lines), "")
        except UserError as error:
            raise UserError(
                f"{self.path}: expected one list of objects, or an object in each line: "
                f"{_reason(error)}."
            ) from None
        for number, one in enumerate(content, 1):
            yield _json_record(number, one, True)


class ParquetTable(Table):
    """Parquet, by pyarrow."""

    unit = "row"

    def __init__(self, path, lines):
        super().__init__(path, lines)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise UserError(
                f"{path}: Parquet needs pyarrow: pip install 'keras_attn[arrow]'."
            ) from None
        self._errors = (pyarrow.ArrowException, OSError)
        try:
            source = opened(path) if is_remote(path) else path
            self._file = pyarrow.parquet.ParquetFile(source)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file.") from None
        except self._errors as error:
            raise self._unreadable(error) from None
        self.names = list(self._file.schema_arrow.names)

    def records(self, keys):
        number = itertools.count(1)
        try:
            for batch in self._file.iter_batches(columns=list(keys)):
                for cells in batch.to_pylist():
                    yield Record(next(number), cells)
        except self._errors as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> UserError:
        (reason, *_) = [*str(error).splitlines(), type(error).__name__]
        return UserError(f"{self.path}: cannot be read as Parquet ({reason}).")


class ConllTable(Table):
    """A word a line with its columns, and an empty line after each sentence, which is a row.

    A cell has the words of a column, separated by spaces. Left out are comments (lines that begin
    with # and have another number of columns than words), -DOCSTART-, and the lines of CoNLL-U
    that are not words of the text (1-2, 1.1).
    """

    def __init__(self, path, lines):
        super().__init__(path, lines)
        self._is_universal = suffixes_of(path)[-1:] == [".conllu"]
        self.width = 0
        sentences = self._sentences()
        first = next(sentences, None)
        require(first is not None, f"{path}: the file has no sentence.")
        self._all = itertools.chain([first], sentences)

    @property
    def usual_columns(self) -> tuple[int, int]:
        """The columns of words and of tags."""
        return (1, 3) if self._is_universal else (0, self.width - 1)

    def records(self, keys):
        for begin, words in self._all:
            others = {len(word) for word in words} - {self.width}
            if others:
                mistake = f"expected {self.width} columns, found {min(others)} in this sentence"
                yield Record(begin, [""] * self.width, mistake)
            else:
                yield Record(begin, [" ".join(cells) for cells in zip(*words, strict=True)])

    def _sentences(self) -> Iterator[tuple[int, list[list[str]]]]:
        words: list[list[str]] = []
        begin = 1
        for number, line in enumerate(itertools.chain(self._lines, [""]), 1):
            cells = _conll_cells(line)
            if not cells or line.startswith("-DOCSTART-"):
                if words:
                    yield begin, words
                words = []
            elif not self._is_comment(cells) and self._is_word(cells):
                self.width = self.width or len(cells)
                begin = begin if words else number
                words.append(cells)

    def _is_comment(self, cells: list[str]) -> bool:
        return cells[0].startswith("#") and (self._is_universal or len(cells) != self.width)

    def _is_word(self, cells: list[str]) -> bool:
        return not self._is_universal or cells[0].isdecimal()


def open_table(
    path: str,
    plain: type[Table],
    encoding: str | None = None,
    skip_bad_lines: bool = False,
) -> Table:
    """Opens a file as the table that its name or its first lines show it to be.

    Args:
        path: The file.
        plain: The form of a file that is not known by its name.
        encoding: The encoding, UTF-8 by default.
        skip_bad_lines: Whether lines that cannot be decoded are malformed rows instead of errors.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged.
    """
    form = form_of(path) or plain
    if form is ParquetTable:
        require(encoding is None, f"{path}: Parquet has no `encoding`.", encoding=encoding)
        return ParquetTable(path, Lines(path))
    lines = Lines(path, skip_bad_lines, encoding)
    if form is plain and lines.peek(1)[0].startswith('{"'):
        form = JsonTable
    if form is TabSeparatedTable and _is_quoted(lines.peek(_LOOKED_AT)):
        form = QuotedTabSeparatedTable
    return form(path, lines)


def form_of(path: str) -> type[Table] | None:
    """The form of a file by its name, or `None`."""
    return _FORMS.get(next(iter(suffixes_of(path)[-1:]), ""))


def suffixes_of(path: str) -> list[str]:
    """The endings of a file's name in lower case, but for those of a compression."""
    packed = {suffix for compression in COMPRESSIONS for suffix in compression.suffixes}
    return [
        suffix.lower() for suffix in PurePosixPath(path).suffixes if suffix.lower() not in packed
    ]


def _explained(error: csv.Error) -> str:
    """What a message of the CSV reader means."""
    found = (meaning for words, meaning in _CSV_ERRORS.items() if words in str(error))
    return next(found, str(error))


def _count_fields(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), ()))
    except csv.Error:
        return 0  # reading it reports this


def _is_quoted(lines: list[str]) -> bool:
    """Whether every field of lines is in quotes."""
    fields = [field for line in lines for field in line.split("\t")]
    return len(fields) > 1 and all(
        len(field) > 1 and field.startswith('"') and field.endswith('"') for field in fields
    )


def _conll_cells(line: str) -> list[str]:
    # Cells of CoNLL-U may have spaces.
    return [cell.strip() for cell in line.split("\t")] if "\t" in line.strip() else line.split()


def _reason(error: UserError) -> str:
    """What is wrong with JSON, without the name of a file."""
    return str(error).removeprefix(": ").removesuffix(".")


def _refuse_wrapped(path: str, cells: dict[str, Any]) -> None:
    """Raises if the only object of a file holds rows or columns, and is no row itself."""
    for name, cell in cells.items():
        if isinstance(cell, list) and cell and all(isinstance(one, dict) for one in cell):
            raise UserError(
                f"{path}: the rows are inside {name!r}; write them as a list of objects, or an "
                "object a line."
            )
    lists = [len(cell) for cell in cells.values() if isinstance(cell, list)]
    are_columns = len(lists) == len(cells) > 1 and len(set(lists)) == 1 < lists[0]
    if are_columns and suffixes_of(path)[-1:] == [".json"]:
        raise UserError(
            f"{path}: expected rows, found the columns {', '.join(map(repr, cells))} as lists; "
            "write a list of objects, or an object a line."
        )


def _json_record(number: int, found: Any, has_escapes: bool) -> Record:
    if not isinstance(found, dict):
        return Record(number, {}, f"expected a JSON object, found {excerpt(json.dumps(found))}")
    try:
        if has_escapes:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Record(number, {}, "found a character that is half of a surrogate pair")
    return Record(number, found)


_FORMS: dict[str, type[Table]] = {
    ".csv": DelimitedTable,
    ".tsv": TabSeparatedTable,
    ".tab": TabSeparatedTable,
    ".jsonl": JsonTable,
    ".ndjson": JsonTable,
    ".json": JsonTable,
    ".parquet": ParquetTable,
    ".pq": ParquetTable,
    **dict.fromkeys((".conll", ".conllu", ".bio", ".iob", ".iob2"), ConllTable),
}
