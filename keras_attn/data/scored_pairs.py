"""Pairs of texts with similarity scores."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keras_attn.data.files import Pairs, are_aligned, joined_names
from keras_attn.data.reading.columns import select
from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading
from keras_attn.data.reading.tables import open_table

_ROLES = ("text", "other", "score")


@dataclass
class ScoredPairs(Pairs[str]):
    """Pairs of texts, each with a score.

    Attributes:
        scores: Similarity of the texts of each pair, in any unit.

    Examples:
        >>> pairs = ScoredPairs(["A cat.", "A cat."], ["A kitten.", "A car."], scores=[4.2, 0.5])
        >>> pairs.targets[int(np.argmax(pairs.scores))]
        'A kitten.'
    """

    scores: list[float] = field(default_factory=list)


def has_scores(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
) -> bool:
    r"""Returns whether tables are of pairs with scores: the first one has three columns.

    Args:
        paths: Tables of `text`, `other` and perhaps `score` (see `read_pairs`).
        columns: Column of each, by default the usual ones.
        encoding: Encoding of the files, UTF-8 by default.

    Raises:
        UserError: A file is missing, unreadable, empty or damaged.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("scored.tsv").write_text("A cat.\tA kitten.\t4.2\n")
        >>> has_scores("scored.tsv")
        True
    """
    files = expanded(paths)
    if are_aligned(paths, files):
        return False
    table = open_table(files[0], TabSeparatedTable, encoding, skip_bad_lines=True)
    found, _ = select(table, _ROLES[:2], columns, _ROLES[2:])
    return found == _ROLES


def read_scored_pairs(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
) -> ScoredPairs:
    r"""Reads pairs of texts with scores, under the rules of `read_pairs`.

    Args:
        paths: Tables of `text`, `other` and `score`, such as lines `text<TAB>text<TAB>number`.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        columns: Column of each, by default the usual ones.
        encoding: Encoding of the files, UTF-8 by default.

    Returns:
        The pairs, in the order of the files.

    Raises:
        UserError: See `read_pairs`; or a score is not a finite number.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("scored.tsv").write_text("A cat.\tA kitten.\t4.2\nA cat.\tA car.\t0.5\n")
        >>> read_scored_pairs("scored.tsv").scores
        [4.2, 0.5]
    """
    files = expanded(paths)
    reading = Reading(joined_names(files), Form(columns, encoding, skip_bad_lines))
    sources, targets, scores = [], [], []
    for source, target, score in reading.good(reading.tables(files, _ROLES)):
        sources.append(source)
        targets.append(target)
        scores.append(score)
    return ScoredPairs(
        sources, targets, reading.name, reading.skipped, reading.remarks, scores=scores
    )
