"""Tables of named values, JSON and Parquet; those within another value are called `outer.inner`."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from keras_attn.data.reading.content import is_remote, opened, suffixes_of
from keras_attn.data.reading.lines import excerpt, is_empty, mistake_of
from keras_attn.data.reading.table import Record, Table, shown_names
from keras_attn.documents import parse_json
from keras_attn.limits import FILE_BYTES
from keras_attn.validation import UserError, require

_LOOKED_AT = 100  # rows that show what objects have
_DEPTH = 4  # objects within objects that are looked into


class JsonTable(Table):
    """JSON: an object a line, or a list of objects."""

    def __init__(self, path, lines):
        super().__init__(path, lines)
        (start, *_) = lines.peek(1)
        is_list = start.lstrip().startswith("[")
        rows = self._of_list() if is_list else self._of_lines()
        seen = list(itertools.islice(rows, _LOOKED_AT))
        require(bool(seen), f"{path}: the file has no row.")
        if len(seen) == 1:
            _refuse_wrapped(path, seen[0].cells)
        self._all = map(_flat_record, itertools.chain(seen, rows))
        seen = list(map(_flat_record, seen))
        # An object may lack what others have.
        self.names = [*dict.fromkeys(name for record in seen for name in record.cells)]
        if not self.names and seen[0].mistake is not None:
            raise UserError(f"{self.place(seen[0])}: {seen[0].mistake}.")

    def records(self, keys):
        for record in self._all:
            missing = [key for key in keys if key not in record.cells]
            if record.mistake is None and missing:
                found = shown_names(list(record.cells)) or "none"
                mistake = f"expected the column {missing[0]!r}, found {found}"
                record = record._replace(mistake=mistake)
            yield record

    def _of_lines(self) -> Iterator[Record]:
        for number, line in enumerate(self._lines, 1):
            if mistake := mistake_of(line):
                yield Record(number, {}, mistake)
            elif not is_empty(line):  # which has no meaning, as at the end of many files
                try:
                    # Only an escape can be half of a surrogate pair.
                    yield _json_record(number, parse_json(line, ""), "\\u" in line)
                except UserError as error:
                    is_spread = line.strip() == "{"
                    reason = f"{_reason(error)} in {excerpt(line)}"
                    reason = "an object in several lines" if is_spread else reason
                    yield Record(number, {}, f"expected a JSON object in each line: {reason}")

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
        self.names = list(_flat_names(self._file.schema_arrow))

    def records(self, keys):
        number = itertools.count(1)
        try:
            for batch in self._file.iter_batches(columns=list(keys)):
                for cells in batch.to_pylist():
                    yield _flat_record(Record(next(number), cells))
        except self._errors as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> UserError:
        (reason, *_) = [*str(error).splitlines(), type(error).__name__]
        return UserError(f"{self.path}: cannot be read as Parquet ({reason}).")


def _reason(error: UserError) -> str:
    """What is wrong with JSON, without the name of a file, and without a place in a line."""
    text = str(error).removeprefix(": ").removeprefix("valid JSON is expected: ")
    return re.sub(r": line 1 column \d+ \(char \d+\)", "", text).removesuffix(".")


def _flat_names(fields: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Names of the values of Arrow fields."""
    import pyarrow

    for field in fields:
        if pyarrow.types.is_struct(field.type) and depth:
            for name in _flat_names(field.type, depth - 1):
                yield f"{field.name}.{name}"
        else:
            yield field.name


def _flat_record(record: Record) -> Record:
    """A row with the values of objects in place of the objects."""
    if not any(isinstance(cell, dict) for cell in record.cells.values()):
        return record
    return record._replace(cells=dict(_flat_cells(record.cells)))


def _flat_cells(cells: dict[str, Any], depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    for name, cell in cells.items():
        if isinstance(cell, dict) and cell and depth:
            for inner, value in _flat_cells(cell, depth - 1):
                yield f"{name}.{inner}", value
        else:
            yield name, cell


def _refuse_wrapped(path: str, cells: dict[str, Any]) -> None:
    """Raises if the only object of a file holds rows or columns, and is no row itself."""
    for name, cell in cells.items():
        if isinstance(cell, list) and cell and all(isinstance(one, dict) for one in cell):
            raise UserError(
                f"{path}: the rows are inside {name!r}; write them as a list of objects, or an "
                "object a line."
            )
    objects = [cell for cell in cells.values() if isinstance(cell, dict)]
    has_numbers = [cells, *objects] if len(cells) == len(objects) > 0 else []
    by_number = any(one and all(map(str.isdecimal, one)) for one in has_numbers)
    if by_number or set(cells) == {"columns", "index", "data"}:
        raise UserError(
            f"{path}: expected rows, found {shown_names(list(cells))} as pandas writes other forms "
            "of tables; write to_json(orient='records', lines=True)."
        )
    lists = [len(cell) for cell in cells.values() if isinstance(cell, list)]
    are_columns = len(lists) == len(cells) > 1 and len(set(lists)) == 1 < lists[0]
    if are_columns and suffixes_of(path)[-1:] == [".json"]:
        raise UserError(
            f"{path}: expected rows, found the columns {shown_names(list(cells))} as lists; "
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
