"""Files of pairs of texts, and of texts, as lists of strings."""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.lines import BadLine, is_empty, iterate_lines
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Mistake, Reading, Row, table_rows
from keras_attn.data.reading.several import SEVERAL
from keras_attn.data.reading.tables import form_of, open_table
from keras_attn.data.stored.cache import Cache
from keras_attn.validation import UserError, require

_MISSING = object()

Source = TypeVar("Source", bound=str | bytes)


@dataclass
class Pairs(Generic[Source]):
    """Aligned source and target texts.

    Attributes:
        sources: The source texts, or the images that `read_labelled_images` returns.
        targets: One target for each source: a text, or a tuple of labels or of numbers. Several
            rows with the same source are alternatives.
        name: Where the texts come from, for messages.
        skipped: Number of malformed rows that were left out.
        notes: Lines for users about how the files were read.
        untagged: Where targets are tags, the one of words that are neither learned nor judged.
        of_two: Whether each source is two texts with a tab between them.

    Examples:
        >>> pairs = Pairs(["cat", "dog"], ["K AE T", "D AO G"])
        >>> len(pairs), pairs.targets[1]
        (2, 'D AO G')
    """

    sources: Sequence[Source]
    targets: Sequence[Any]
    name: str = "pairs"
    skipped: int = 0
    notes: tuple[str, ...] = ()
    untagged: str | None = None
    of_two: bool = False

    def __post_init__(self) -> None:
        require(
            len(self.sources) == len(self.targets),
            "`sources` and `targets` must have the same length.",
            sources=len(self.sources),
            targets=len(self.targets),
        )

    def __len__(self) -> int:
        return len(self.sources)


_SHOWN = 3
_LOOKED_AT = 100  # rows


def read_pairs(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    mistake: Mistake = lambda *parts: None,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
    roles: tuple[str, str] = ("source", "target"),
    separator: str | None = None,
    cache: Cache | None = None,
) -> Pairs[str]:
    r"""Reads pairs of texts from tables or from two line-aligned files.

    The name of a file shows its form: CSV (`.csv`, with quotes and line breaks in fields), JSON
    lines (`.jsonl`, `.ndjson`, `.json`), Parquet (`.parquet`, with pyarrow), CoNLL columns
    (`.conll`, `.conllu`, `.bio`, `.iob`, `.iob2`) and tab-separated lines (all others). Files may
    be compressed with gzip, bzip2, xz or zstd, which is recognized by their content. A text of
    nothing but white space counts as empty.

    The columns of a table are recognized by usual names, such as "text" and "label"; a table of
    two columns needs none. A first line of usual names is not an example.

    Args:
        paths: Tables: files, patterns such as `data/*.csv`, folders of files of one form, or paths
            that `tf.io.gfile` reads; or two files of other names, whose lines correspond.
        skip_bad_lines: Whether malformed rows are left out and counted in `Pairs.skipped`
            instead of raising. Of two aligned files a pair is left out when either line is bad.
        mistake: Function that checks a source and its target; a pair for which it returns a text is
            malformed.
        columns: Column of the source and of the target, by the names in `roles`; each is a name or
            a number from 1.
        encoding: Encoding of the files, by default UTF-8 with or without a byte order mark.
        roles: What sources and targets are called in `columns` and messages. Targets that are
            called "label" may have several labels, as lists, as JSON of lists, or with a
            separator, and are tuples then; "number" are always tuples.
        separator: What separates several labels or numbers in a cell, besides lists.
        cache: Where the texts are kept in files; by default they are lists in memory.

    Returns:
        The pairs, in the order of the files.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged, it is not clear which columns
            are meant, two aligned files differ in their number of lines, a row is malformed, or
            every row was left out. The message names file, line and column; columns of
            tab-separated lines count characters from 1 (bytes for invalid UTF-8).

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("words.tsv").write_text("cat\tK AE T\ndog\tD AO G\n")
        >>> pairs = read_pairs("words.tsv")
        >>> pairs.sources, pairs.targets
        (['cat', 'dog'], ['K AE T', 'D AO G'])
        >>> _ = Path("reviews.csv").write_text('id,text,label\n1,"Good, but long",pos\n')
        >>> read_pairs("reviews.csv", roles=("text", "label")).sources
        ['Good, but long']
    """
    form = Form(columns, encoding, skip_bad_lines, separator)
    files = expanded(paths)
    require(bool(files), "Pairs are read from at least one file.", paths=files)
    reading = Reading(joined_names(files), form)
    if are_aligned(paths, files):
        require(columns is None, "Two aligned files have no `columns`.", columns=columns)
        rows = aligned_rows(files, form, mistake, roles[1])
    else:
        rows = reading.tables(files, roles, mistake=mistake)
    sources, targets = reading.columns(rows, roles, files, cache, mistake)
    return Pairs(sources, targets, reading.name, reading.skipped, reading.remarks)


def read_texts(path: str | os.PathLike, allow_empty: bool = False) -> list[str]:
    r"""Reads a file of one text a line, under the rules of `read_pairs`.

    Args:
        path: A UTF-8 file, plain or compressed.
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
    for number, line in enumerate(iterate_lines(str(path)), 1):
        if not allow_empty and is_empty(line):
            raise UserError(
                f"{path}, line {number}, column 1: expected a text, found an empty line."
            )
        texts.append(line)
    return texts


def has_label_lists(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
) -> bool:
    r"""Returns whether the labels of tables are lists, or JSON of lists, in the first rows.

    Args:
        paths: Tables of `text` and `label` (see `read_pairs`).
        columns: Column of each, by default the usual ones.
        encoding: Encoding of the files, UTF-8 by default.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("rude.jsonl").write_text('{"text": "You!", "labels": ["toxic", "insult"]}\n')
        >>> has_label_lists("rude.jsonl")
        True
    """
    files = expanded(paths)
    if not files or are_aligned(paths, files) or Path(files[0]).is_fifo():  # read only once
        return False
    form = Form(columns, encoding, skip_bad_lines=True)
    rows = itertools.islice(table_rows(files[0], ("text", "label"), form), _LOOKED_AT)
    labels = [row.fields[-1] for row in rows if row.mistake is None]
    return bool(labels) and all(isinstance(one, tuple) for one in labels)


def have_columns(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    names: Collection[Any],
    encoding: str | None = None,
) -> bool:
    """Returns whether files are tables, and whether the first one has columns of certain names.

    Args:
        paths: Files, patterns or folders.
        names: The names.
        encoding: Encoding of the files, UTF-8 by default.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged.
    """
    files = expanded(paths)
    if not files or are_aligned(paths, files) or Path(files[0]).is_fifo():  # read only once
        return False
    table = open_table(files[0], TabSeparatedTable, encoding, skip_bad_lines=True)
    found = table.names or [cell.strip() for cell in table.first or ()]
    return set(names) <= set(found)


def are_aligned(given: Sequence | str | os.PathLike, files: Sequence[str]) -> bool:
    """Whether two files were named that are no tables, so that their lines correspond.

    Args:
        given: What was named.
        files: The files that it means.

    Raises:
        UserError: One of two files is a table and the other is not.
    """
    if len(files) != 2 or isinstance(given, str | os.PathLike):
        return False
    if [str(path) for path in given] != list(files):
        return False  # a pattern or a folder
    forms = [form_of(file) for file in files]
    if forms.count(None) == 1:
        raise UserError(
            f"{files[0]} and {files[1]}: two files must be tables of one form, or a source and a "
            "target file whose lines correspond; the name of one of them is that of a table."
        )
    return forms == [None, None]


def joined_names(files: Sequence[str]) -> str:
    """A name for the content of several files, in messages."""
    if len(files) <= _SHOWN:
        return " + ".join(files)
    return f"{' + '.join(files[:_SHOWN])} and {len(files) - _SHOWN:,} more files"


def aligned_rows(paths: Sequence[str], form: Form, mistake: Mistake, role: str) -> Iterator[Row]:
    """Yields the examples of two files whose lines correspond.

    Args:
        paths: The files of sources and of targets.
        form: How they are read.
        mistake: Describes what is wrong with a source and a target, or returns `None`.
        role: What a target is called.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged, or one has more lines.
    """
    source_path, target_path = paths
    files = [iterate_lines(path, form.skip_bad_lines, form.encoding) for path in paths]
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
        if number == 1 and all("\t" in str(line) for line in row):
            raise UserError(
                f"{source_path} and {target_path} are read as sources and targets, line by line, "
                "but both have tabs. Name tables *.tsv, or give a pattern or a folder."
            )
        texts = [str(line) for line in row]
        # No labels are an empty line.
        needed = zip(paths[:1] if form.separator else paths, texts, strict=False)
        empty = [path for path, line in needed if is_empty(line)]
        source, target = texts[0], texts[1]
        wrong: str | None = "found a character that cannot be decoded"
        if not any(isinstance(line, BadLine) for line in row):
            read = SEVERAL[role](target, form.separator) if role in SEVERAL else None
            target, problem = read or (target, None)
            wrong = f"found {problem}" if problem else mistake(source, target)
            wrong = "expected a text, found an empty line" if empty else wrong
        place = f"{empty[0] if empty else target_path}, line {number}, column 1"
        yield Row((source, target), wrong and f"{place}: {wrong}")
