"""Text files as lists of strings: tab-separated pairs, line-aligned pairs, single columns."""

import gzip
import io
import itertools
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from keras_attn.limits import COMPRESSION, DECOMPRESSED_BYTES, LINE_BYTES
from keras_attn.validation import UserError, require

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_EXCERPT_LENGTH = 40
_ALWAYS_READ = 16 << 20
_CHUNK_BYTES = 1 << 20
_MISSING = object()
_HINT = "Set `skip_bad_lines` (--skip-bad-lines) to leave such lines out."


Source = TypeVar("Source", bound=str | bytes)


@dataclass
class Pairs(Generic[Source]):
    """Aligned source and target texts.

    Attributes:
        sources: The source texts, or the images that `read_labelled_images` returns.
        targets: One target text for each source. Several rows with the same source are
            alternatives.
        name: Where the texts come from, for messages.
        skipped: Number of malformed rows that were left out.

    Examples:
        >>> pairs = Pairs(["cat", "dog"], ["K AE T", "D AO G"])
        >>> len(pairs), pairs.targets[1]
        (2, 'D AO G')
    """

    sources: list[Source]
    targets: list[str]
    name: str = "pairs"
    skipped: int = 0

    def __post_init__(self) -> None:
        require(
            len(self.sources) == len(self.targets),
            "`sources` and `targets` must have the same length.",
            sources=len(self.sources),
            targets=len(self.targets),
        )

    def __len__(self) -> int:
        return len(self.sources)


Mistake = Callable[[str, str], str | None]
"""Returns a description of a mistake in a source and its target, or `None`."""

Row = tuple[tuple, str | None]
"""The fields of a row; and a description of its mistake with its place, or `None`."""


def read_pairs(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    mistake: Mistake = lambda source, target: None,
) -> Pairs[str]:
    r"""Reads pairs of texts from a tab-separated file or from two line-aligned files.

    Files are UTF-8, with or without a byte order mark, plain or compressed with gzip (recognized
    by their content, not by name). Lines end with `\n` or `\r\n`; every other character, Unicode
    line separators included, belongs to the text. A text of nothing but white space counts as
    empty.

    Args:
        paths: One path of a file of lines `source<TAB>target`, or the two paths of a source and
            a target file whose lines correspond.
        skip_bad_lines: Whether malformed lines are left out and counted in `Pairs.skipped`
            instead of raising. Of two aligned files a pair is left out when either line is bad.
        mistake: Function that checks a source and its target; a pair for which it returns a text is
            malformed.

    Returns:
        The pairs, in the order of the files.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged, two files differ in their
            number of lines, a line is malformed, or every line was left out. The message names
            file, line and column; columns count characters from 1 (bytes for invalid UTF-8).

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("words.tsv").write_text("cat\tK AE T\ndog\tD AO G\n")
        >>> pairs = read_pairs("words.tsv")
        >>> pairs.sources, pairs.targets
        (['cat', 'dog'], ['K AE T', 'D AO G'])
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    names = [str(path) for path in paths]
    require(
        len(names) in (1, 2),
        "Pairs are read from one tab-separated file or from two line-aligned files.",
        paths=names,
    )
    read = _tab_separated if len(names) == 1 else _aligned
    rows = read([Path(name) for name in names], skip_bad_lines, mistake)
    pairs: Pairs[str] = Pairs([], [], " + ".join(names))
    for source, target in good_rows(rows, pairs, skip_bad_lines):
        pairs.sources.append(source)
        pairs.targets.append(target)
    return pairs


def good_rows(rows: Iterable[Row], pairs: Pairs, skip_bad_lines: bool) -> Iterator[tuple]:
    """Yields the fields of well-formed rows, and refuses or counts the others.

    Args:
        rows: The rows.
        pairs: The pairs that the caller collects; malformed rows are counted in its `skipped`.
        skip_bad_lines: Whether malformed rows are counted instead of raising.

    Raises:
        UserError: A row is malformed, or every row was left out.
    """
    for fields, mistake in rows:
        if mistake is None:
            yield fields
        elif skip_bad_lines:
            pairs.skipped += 1
        else:
            raise UserError(f"{mistake}. {_HINT}")
    if not pairs.sources:
        raise UserError(
            f"{pairs.name}: no pair is left because all {pairs.skipped:,} lines are malformed."
        )


def read_texts(path: str | os.PathLike, allow_empty: bool = False) -> list[str]:
    r"""Reads a file of one text a line, under the rules of `read_pairs`.

    Args:
        path: A UTF-8 file, plain or compressed with gzip.
        allow_empty: Whether empty lines are texts too (so that outputs stay line-aligned with
            the file) or mistakes.

    Returns:
        The texts, in the order of the file.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged, or a line is malformed.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("texts.txt").write_text("A cat sat.\nA dog ran.\n")
        >>> read_texts("texts.txt")
        ['A cat sat.', 'A dog ran.']
    """
    texts = []
    for number, line in enumerate(iterate_lines(Path(path)), 1):
        if not allow_empty and is_empty(line):
            raise UserError(
                place_of(Path(path), number, 1) + "expected a text, found an empty line."
            )
        texts.append(line or "")
    return texts


def _tab_separated(paths: list[Path], skip_bad_lines: bool, mistake: Mistake) -> Iterator[Row]:
    (path,) = paths
    for number, line in enumerate(iterate_lines(path, skip_bad_lines), 1):
        line = line or ""
        source, tab, target = line.partition("\t")
        column, found = len(source) + 2, ""
        if not tab:
            column, found = len(line) + 1, "no tab"
        elif "\t" in target:
            column, found = column + target.index("\t"), f"{line.count(tab)} tabs"
        elif is_empty(source):
            column, found = 1, "an empty source"
        elif is_empty(target):
            found = "an empty target"
        expected = found and f"expected source<TAB>target, found {found} in {excerpt(line)}"
        wrong = expected or mistake(source, target)
        yield (source, target), wrong and f"{place_of(path, number, column)}{wrong}"


def _aligned(paths: list[Path], skip_bad_lines: bool, mistake: Mistake) -> Iterator[Row]:
    source_path, target_path = paths
    files = [iterate_lines(path, skip_bad_lines) for path in paths]
    for number, row in enumerate(itertools.zip_longest(*files, fillvalue=_MISSING), 1):
        if _MISSING in row:
            shorter = row.index(_MISSING)
            counts = [number - 1, number + sum(1 for _ in files[1 - shorter])]
            found = dict(zip((paths[shorter], paths[1 - shorter]), counts, strict=True))
            raise UserError(
                "Aligned files must have the same number of lines: "
                f"{source_path} has {found[source_path]:,}, "
                f"{target_path} has {found[target_path]:,}."
            )
        source, target = (str(line or "") for line in row)
        bad_path = source_path if is_empty(source) else target_path if is_empty(target) else None
        wrong = "expected a text, found an empty line" if bad_path else mistake(source, target)
        place = wrong and place_of(bad_path or target_path, number, 1)
        yield (source, target), wrong and f"{place}{wrong}"


def iterate_lines(path: Path, skip_bad_lines: bool | None = None) -> Iterator[str | None]:
    """Yields the lines of a file without their line ends.

    Args:
        path: The file.
        skip_bad_lines: Whether a line of invalid UTF-8 is None instead of an error; None where
            users cannot choose.
    """
    number, rest = 0, b""
    for chunk in _content(path):
        block, end, rest = (rest + chunk).rpartition(b"\n")
        if end:
            yield from _lines_of(block, path, number, skip_bad_lines)
            number += block.count(b"\n") + 1
    if rest:
        yield from _lines_of(rest, path, number, skip_bad_lines)
    elif not number:
        raise UserError(f"{path}: the file is empty.")


def _lines_of(
    block: bytes, path: Path, before: int, skip_bad_lines: bool | None
) -> list[str | None]:
    """The lines of a block that follows `before` lines; None for lines to be skipped."""
    lines: list[str | None]
    try:
        lines = [*block.decode("utf-8").split("\n")]
    except UnicodeDecodeError as error:
        if not skip_bad_lines:
            number = before + block.count(b"\n", 0, error.start) + 1
            column = error.start - block.rfind(b"\n", 0, error.start)
            hint = "" if skip_bad_lines is None else f" {_HINT}"
            raise UserError(
                f"{path}, line {number}, byte {column}: expected UTF-8, found the byte "
                f"0x{block[error.start]:02x} ({error.reason}).{hint}"
            ) from None
        lines = [_decode_or_none(line) for line in block.split(b"\n")]
    if b"\r" in block:
        lines = [line and line.removesuffix("\r") for line in lines]
    return lines


def _decode_or_none(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _content(path: Path) -> Iterator[bytes]:
    """A file's content in pieces, decompressed, without a byte order mark."""
    require("\0" not in str(path), f"{str(path)!r} is not a valid file name.")
    try:
        with path.open("rb") as file:
            chunks = _chunks(path, file)
            yield next(chunks, b"").removeprefix(_BYTE_ORDER_MARK)
            yield from chunks
    except FileNotFoundError:
        raise UserError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise UserError(f"{path}: expected a text file, found a directory.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None


def _chunks(path: Path, file: io.BufferedReader) -> Iterator[bytes]:
    """A file's content in pieces, each checked against the limits before the next is read."""
    compressed = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    endless = compressed or not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    stream = gzip.GzipFile(fileobj=file) if compressed else file
    total = line = 0
    # No line within a piece is too long.
    size = min(_CHUNK_BYTES, LINE_BYTES.value)
    while chunk := _read_chunk(path, stream, size, compressed):
        total += len(chunk)
        first_end, last_end = chunk.find(b"\n"), chunk.rfind(b"\n")
        LINE_BYTES.check(line + (first_end if first_end >= 0 else len(chunk)), str(path))
        line = len(chunk) - last_end - 1 if first_end >= 0 else line + len(chunk)
        if endless:
            DECOMPRESSED_BYTES.check(total, str(path))
        if compressed and total > _ALWAYS_READ:
            # Lines take more memory than their bytes, so highly compressed files are refused.
            COMPRESSION.check(total // os.fstat(file.fileno()).st_size, str(path))
        yield chunk


def _read_chunk(path: Path, stream: io.BufferedIOBase, size: int, compressed: bool) -> bytes:
    try:
        return stream.read(size)
    except (EOFError, OSError, zlib.error) as error:
        if not compressed:
            raise
        raise UserError(f"{path}: damaged or truncated gzip file ({error}).") from None


def is_empty(text: str | None) -> bool:
    """Whether a text is nothing but white space."""
    return not text or text.isspace()


def place_of(path: Path, line: int, column: int) -> str:
    """The beginning of a message about a line."""
    return f"{path}, line {line}, column {column}: "


def excerpt(line: str) -> str:
    """The beginning of a line, for a message."""
    shown = line if len(line) <= _EXCERPT_LENGTH else line[:_EXCERPT_LENGTH] + "…"
    return repr(shown)
