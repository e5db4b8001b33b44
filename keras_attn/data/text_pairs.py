"""Files of pairs of texts with a label or a number each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keras_attn.data.files import Pairs, joined_names
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading, Row
from keras_attn.data.stored.cache import Cache
from keras_attn.tokenizers.text_pairs import BETWEEN

_ROLES = ("text", "other")


def read_text_pairs(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    columns: Mapping[str, str | int],
    skip_bad_lines: bool = False,
    encoding: str | None = None,
    cache: Cache | None = None,
    role: str = "label",
) -> Pairs[str]:
    r"""Reads pairs of texts with labels or numbers, under the rules of `read_pairs`.

    Args:
        paths: Tables of `text`, `other` and what `role` names.
        columns: Column of each, a name or a number from 1.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        encoding: Encoding of the files, UTF-8 by default.
        cache: Where the texts are kept in files; by default they are lists in memory.
        role: What a target is called, "label" or "number".

    Returns:
        The pairs of texts as sources, with a tab between the texts, and their targets.

    Raises:
        UserError: See `read_pairs`; or a text has a tab.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("nli.tsv").write_text("yes\tA cat sat.\tAn animal sat.\n")
        >>> pairs = read_text_pairs("nli.tsv", {"text": 2, "other": 3, "label": 1})
        >>> pairs.sources, pairs.targets
        (['A cat sat.\tAn animal sat.'], ['yes'])
    """
    files = expanded(paths)
    reading = Reading(joined_names(files), Form(columns, encoding, skip_bad_lines))
    rows = _joined(reading.tables(files, (*_ROLES, role), mistake=tab_in_pair))
    sources, targets = reading.columns(rows, ("pair", role), files, cache, tab_in_pair)
    notes = reading.remarks
    return Pairs(sources, targets, reading.name, reading.skipped, notes, of_two=True)


def tab_in_pair(text: str, other: str, *rest: str) -> str | None:
    """Describes a text of a pair that has a tab, which is what is put between the two."""
    has_tab = BETWEEN in text or BETWEEN in other
    return "expected two texts without tabs, found a tab in one" if has_tab else None


def _joined(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        if row.mistake is None:
            text, other, label = row.fields
            row = Row((f"{text}{BETWEEN}{other}", label))
        yield row
