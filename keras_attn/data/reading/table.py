"""A table of a file: its lines and rows."""

import abc
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from keras_attn.data.reading.lines import iterate_lines

_SHOWN = 12
_LONGEST = 40

Key = int | str
"""A column: its index where a file has no names of columns, or else its name."""


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


def _is_same(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether cells are those of a header, perhaps after a byte order mark."""
    return [cell.removeprefix("\ufeff") for cell in cells] == header


def shown_names(names: Sequence[str]) -> str:
    """Names of columns for a message."""
    shown = ", ".join(repr(name[:_LONGEST]) for name in names[:_SHOWN])
    return shown + (" …" if len(names) > _SHOWN else "")


class Lines:
    """The lines of a file, read once; the first ones can be looked at before.

    Args:
        path: The file.
        skip_bad_lines: Whether lines that cannot be decoded are `BadLine`s instead of errors.
        encoding: The encoding, UTF-8 by default.

    Attributes:
        left_out: Number of lines at the beginning that are left out.
    """

    def __init__(self, path: str, skip_bad_lines: bool = False, encoding: str | None = None):
        self._rest = iterate_lines(path, skip_bad_lines, encoding)
        self._seen: list[str] = []
        self.left_out = 0

    def peek(self, count: int) -> list[str]:
        """The first lines, as many as there are up to `count`."""
        self._seen += itertools.islice(self._rest, max(count - len(self._seen), 0))
        return self._seen[:count]

    def drop(self) -> None:
        """Leaves out the first line."""
        self.peek(1)
        del self._seen[0]
        self.left_out += 1

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

    doubt: str | None = None
    """A line for users about rows that were read, if they may mean something else."""

    def __init__(self, path: str, lines: Lines):
        self.path = path
        self._lines = lines

    def sample(self, most: int) -> list[list[str]]:
        """The first rows, at most some, if the first one may hold names; else nothing."""
        return []

    def plain_number(self, cell: Any) -> Any:
        """A cell that should hold a number, as Python writes it where that is known."""
        return cell

    @abc.abstractmethod
    def records(self, keys: Sequence[Key]) -> Iterator[Record]:
        """Yields the rows, the first one included.

        Args:
            keys: The columns that are needed.
        """

    def after_header(self, keys: Sequence[Key]) -> Iterator[Record]:
        """Yields the rows after the first one, which holds the names of the columns.

        Where the names occur again, as in joined files, that is a mistake.

        Args:
            keys: The columns that are needed.
        """
        header = self.first or []
        for number, record in enumerate(self.records(keys)):
            if number and record.cells[-1:] == header[-1:] and _is_same(record.cells, header):
                record = record._replace(mistake="the names of the columns again")
            if number:
                yield record

    def place(self, record: Record, key: Key | None = None) -> str:
        """The beginning of a message about a row, or about one of its cells."""
        where = f"{self.path}, {self.unit} {record.line}"
        if key is None:
            return where
        return f"{where}, column {key + 1 if isinstance(key, int) else repr(key)}"
