"""Tables of all forms, opened by the names and the first lines of files."""

import csv
import itertools
from collections.abc import Iterator

from keras_attn.data.reading.content import suffixes_of
from keras_attn.data.reading.delimited import (
    QUOTED,
    DelimitedTable,
    QuotedTabSeparatedTable,
    TabSeparatedTable,
)
from keras_attn.data.reading.lines import excerpt, is_empty, mistake_of
from keras_attn.data.reading.objects import JsonTable, ParquetTable
from keras_attn.data.reading.table import Lines, Record, Table
from keras_attn.validation import require

_LOOKED_AT = 100  # lines that show whether fields are quoted
_LONG = 500  # words of a sentence


class LinesTable(Table):
    """Lines that are texts, tabs included; empty ones, which separate texts, are left out."""

    def __init__(self, path, lines):
        super().__init__(path, lines)
        self.names = ["text"]

    def records(self, keys):
        for number, line in enumerate(self._lines, 1):
            if not is_empty(line):
                yield Record(number, {"text": line}, mistake_of(line))


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
        second = next(sentences, None)
        require(
            second is not None or len(first[1]) <= _LONG,
            f"{path}: an empty line must follow each sentence; the only sentence found has "
            f"{len(first[1]):,} words.",
        )
        _, self._first = first
        self._all = itertools.chain(filter(None, [first, second]), sentences)

    @property
    def usual_columns(self) -> tuple[int, int]:
        """The columns of words and of tags."""
        return (1, 3) if self._is_universal else (0, self.width - 1)

    def column(self, index: int) -> list[str]:
        """A column of the first sentence."""
        return [words[index] for words in self._first if index < len(words)]

    def records(self, keys):
        for begin, words in self._all:
            others = {len(word) for word in words} - {self.width}
            if others:
                mistake = f"expected {self.width} columns, found {min(others)} in this sentence"
                yield Record(begin, [""] * self.width, mistake)
                continue
            columns = list(zip(*words, strict=True))
            split = next((cell for key in keys for cell in columns[key] if " " in cell), None)
            mistake = None if split is None else f"expected one word, found {excerpt(split)}"
            yield Record(begin, [" ".join(cells) for cells in columns], mistake)

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
    comment: str | None = None,
) -> Table:
    """Opens a file as the table that its name or its first lines show it to be.

    Args:
        path: The file.
        plain: The form of a file that is not known by its name.
        encoding: The encoding, UTF-8 by default.
        skip_bad_lines: Whether lines that cannot be decoded are malformed rows instead of errors.
        comment: What lines before the first row begin with that are no rows, such as `#`.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged.
    """
    form = form_of(path) or plain
    if form is ParquetTable:
        require(encoding is None, f"{path}: Parquet has no `encoding`.", encoding=encoding)
        return ParquetTable(path, Lines(path))
    lines = Lines(path, skip_bad_lines, encoding)
    while comment and any(line.startswith(comment) for line in lines.peek(1)):
        lines.drop()
    require(bool(lines.peek(1)), f"{path}: the file has no row.")
    if form in (plain, DelimitedTable) and lines.peek(1)[0].startswith('{"'):
        form = JsonTable
    if form is TabSeparatedTable and _is_quoted(lines.peek(_LOOKED_AT)):
        form = QuotedTabSeparatedTable
    return form(path, lines)


def form_of(path: str) -> type[Table] | None:
    """The form of a file by its name, or `None`."""
    return _FORMS.get(next(iter(suffixes_of(path)[-1:]), ""))


def _is_quoted(lines: list[str]) -> bool:
    """Whether fields of lines are in quotes as in CSV, and the quotes are no part of the text.

    That is so if all are in quotes, or if the lines are rows of one width only when they are read
    as CSV, or if quotes within quotes are doubled.
    """
    fields = [line.split("\t") for line in lines]
    flat = list(itertools.chain.from_iterable(fields))
    if len(flat) > 1 and all(map(QUOTED.fullmatch, flat)):
        return True
    reader = csv.reader([f"{line}\n" for line in lines], delimiter="\t", strict=True)
    rows: list[list[str]] = []
    ends = [0]
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error as error:
        # The lines may end within a row, which is no longer than others.
        longest = max((end - begin for begin, end in itertools.pairwise(ends)), default=0)
        if "unexpected end" not in str(error) or len(lines) - ends[-1] > longest:
            return False
    widths = {len(row) for row in rows}
    is_doubled = any('""' in field[1:-1] for field in flat if QUOTED.fullmatch(field))
    return len(widths) == 1 < max(widths) and (is_doubled or len(set(map(len, fields))) > 1)


def _conll_cells(line: str) -> list[str]:
    # Cells of CoNLL-U may have spaces.
    return [cell.strip() for cell in line.split("\t")] if "\t" in line.strip() else line.split()


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
