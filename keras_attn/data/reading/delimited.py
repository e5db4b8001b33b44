"""Tables of fields between delimiters: CSV and tab-separated text."""

import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator

from keras_attn.data.reading.lines import excerpt, mistake_of
from keras_attn.data.reading.table import Record, Table
from keras_attn.limits import LINE_BYTES
from keras_attn.validation import require

QUOTED = re.compile(r'"([^"]|"")*"')
"""A field in quotes as CSV has it."""

_DECIMAL_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_SURE_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,})")  # of no thousands
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")
_DELIMITERS = ",;\t|"
_LOOKED_AT = 100  # lines that show how fields are quoted
_EMPTY_LINES = 100  # at the end of a TSV that are no rows
_MANY = 5  # lines within a field that may be rows
_NEARLY_ALL = 0.9
_RULE = set("|-: ")  # of the line between the header and the rows of Markdown
_CSV_ERRORS = {
    "new-line character": "a carriage return (CR) outside quotes; lines must end with LF or CRLF",
    "unexpected end of data": "a quote begins a field, and no quote ends it",
    "expected after": "text after the quote that ends a field; a quote within quotes is doubled",
    "field larger": "a field that is too long; perhaps no quote ends it",
}


class _DecimalCommas:
    """Numbers with a decimal comma; the points of others mark thousands then.

    Args:
        fields: The first fields. "1,234" says nothing by itself, "1,2" does.
        are_usual: Whether any number with a comma is taken for one with a decimal comma.

    Attributes:
        note: A line for users, once a number was read so.
    """

    def __init__(self, fields: Iterable[str], are_usual: bool = False):
        pattern = _DECIMAL_COMMA if are_usual else _SURE_COMMA
        self._are_used = any(map(pattern.fullmatch, fields))
        self._are_usual = are_usual
        self.note: str | None = None

    def plain(self, cell: str) -> str:
        """A number as Python writes it; other cells as they are."""
        text = cell.strip()
        is_decimal = _DECIMAL_COMMA.fullmatch(text) and (self._are_used or self._are_usual)
        if not is_decimal and not (self._are_used and _THOUSANDS.fullmatch(text)):
            return cell
        if is_decimal:
            self.note = self.note or f"numbers have a decimal comma, such as {text}"
        return text.replace(".", "").replace(",", ".")


class DelimitedTable(Table):
    """CSV: fields in quotes may have line breaks, and an empty line between rows has no meaning.

    Nor have rows of empty fields at the end, as spreadsheets write them.

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
        if named := re.fullmatch('"?sep=(.)"?', start):
            lines.drop()
            delimiter = named[1]
            start = next(iter(lines.peek(1)), "")
        self._delimiter = delimiter or max(_DELIMITERS, key=lambda one: _count_fields(start, one))
        begin = lines.peek(_LOOKED_AT)
        fields = (
            field.strip('" ')
            for line in map(str, begin)
            for field in [*line.split(self._delimiter), *(one[0] for one in QUOTED.finditer(line))]
        )
        # Semicolons are written where commas are decimal.
        self._commas = _DecimalCommas(fields, are_usual=self._delimiter == ";")
        # A blank between a delimiter and a quote would make the quote a part of the text.
        self._skips_blanks = any(f'{self._delimiter} "' in line for line in begin)
        require(
            self._delimiter != "|"
            or not any("---" in line and set(line) <= _RULE for line in begin),
            f"{path}: expected CSV, found a table of Markdown; save it as CSV.",
        )
        rows = _without_empty_end(self._rows(), fewest=2)
        seen = list(itertools.islice(rows, 1))
        require(bool(seen), f"{path}: the file has no row.")
        undecodable = mistake_of(start)
        require(
            undecodable is None,
            f"{path}, line {seen[0].line}, the names of the columns: {undecodable}. Set `encoding` "
            "(--encoding NAME).",
        )
        self.first = list(seen[0].cells)
        self._seen, self._rest = seen, rows

    @property
    def doubt(self):
        return self._commas.note

    def plain_number(self, cell):
        return self._commas.plain(cell) if isinstance(cell, str) else cell

    def sample(self, most):
        self._seen += itertools.islice(self._rest, max(most - len(self._seen), 0))
        return [record.cells for record in self._seen[:most] if record.mistake is None]

    def records(self, keys):
        for record in itertools.chain(self._seen, self._rest):
            found, width = len(record.cells), len(self.first)
            if record.mistake is None and found != width:
                first, found_in = (
                    excerpt(self._delimiter.join(cells)) for cells in (self.first, record.cells)
                )
                mistake = (
                    f"expected {width} fields as in the first line, {first}, found {found} in "
                    f"{found_in}{row_names_hint(record.cells, width)}"
                )
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
            return csv.reader(
                with_ends(),
                delimiter=self._delimiter,
                skipinitialspace=self._skips_blanks,
                strict=True,
            )

        rows, number = reader(), self._lines.left_out
        while True:
            row.clear()
            cells, mistake = [], None
            try:
                cells = next(rows)
                mistake = self._stray_quote(row, cells)
            except StopIteration:
                return
            except csv.Error as error:
                mistake = f"malformed CSV: {_explained(error)}"
            if mistake:
                again.extend(reversed(row[1:]))
                del row[1:]
                rows = reader()
            undecodable = filter(None, map(mistake_of, row))
            mistake = next(undecodable, mistake)
            if cells or mistake:
                yield Record(number + 1, cells, mistake)
            number += len(row)

    def _stray_quote(self, lines: list[str], cells: list[str]) -> str | None:
        """What is wrong with a row of several lines, if the lines within it are rows as well."""
        within = lines[1:-1]
        rows = sum(_count_fields(line, self._delimiter) == len(cells) for line in within)
        if len(within) < _MANY or rows < _NEARLY_ALL * len(within):
            return None
        return (
            f"a quote begins a field of {len(lines):,} lines, which are rows themselves; a quote "
            "is missing, or one too many"
        )


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
        self._quoted = 0
        fields = (field.strip() for line in lines.peek(_LOOKED_AT) for field in line.split("\t"))
        self._commas = _DecimalCommas(fields)

    @property
    def doubt(self):
        if self._commas.note or not self._quoted:
            return self._commas.note
        return (
            f"{self._quoted:,} fields are in quotes as in CSV, which stay a part of the text; in a "
            "file named *.csv they do not."
        )

    def plain_number(self, cell):
        return self._commas.plain(cell)

    def sample(self, most):
        return [line.split("\t") for line in self._lines.peek(most) if line]

    def records(self, keys):
        return _without_empty_end(self._rows(), fewest=1, most=_EMPTY_LINES)

    def _rows(self) -> Iterator[Record]:
        for number, line in enumerate(self._lines, 1 + self._lines.left_out):
            cells = line.split("\t")
            if '"' in line:
                self._quoted += sum(map(_is_quoted, cells))
            yield Record(number, cells, mistake_of(line))

    def place(self, record, key=None):
        if key is None:
            return super().place(record)
        column = sum(len(cell) + 1 for cell in record.cells[:key]) + 1
        return f"{super().place(record)}, column {column}"


def row_names_hint(cells: list[str], width: int) -> str:
    """What to do about a row of more cells than `width`, if the first one is a name that R gave."""
    if len(cells) != width + 1 or not cells[0].strip('"').isdecimal():
        return ""
    return " (do the rows begin with R's row names? Write them with row.names = FALSE)"


def _is_quoted(field: str) -> bool:
    """Whether a field is in quotes because of what is in it, as spreadsheets write it."""
    return QUOTED.fullmatch(field) is not None and ("," in field or '""' in field[1:-1])


def _without_empty_end(
    rows: Iterator[Record], fewest: int, most: float = math.inf
) -> Iterator[Record]:
    """The rows without at most `most` at the end that have no text, of `fewest` cells or more."""
    empty: list[Record] = []
    for record in rows:
        is_empty = len(record.cells) >= fewest and not any(record.cells)
        if record.mistake is None and is_empty and len(empty) < most:
            empty.append(record)
            continue
        yield from empty
        empty.clear()
        yield record


def _explained(error: csv.Error) -> str:
    """What a message of the CSV reader means."""
    found = (meaning for words, meaning in _CSV_ERRORS.items() if words in str(error))
    return next(found, str(error))


def _count_fields(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), ()))
    except csv.Error:
        return 0  # reading it reports this
