"""Pairs of texts with similarity scores."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from keras_attn.data.files import Pairs, Row, excerpt, good_rows, is_empty, iterate_lines, place_of


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


def has_scores(path: str | os.PathLike) -> bool:
    r"""Returns whether a file is of pairs with scores: its first line has three columns.

    Args:
        path: A file of lines `text<TAB>text` or `text<TAB>text<TAB>number`.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("scored.tsv").write_text("A cat.\tA kitten.\t4.2\n")
        >>> has_scores("scored.tsv")
        True
    """
    return (next(iterate_lines(Path(path), skip_bad_lines=True)) or "").count("\t") == 2


def read_scored_pairs(path: str | os.PathLike, skip_bad_lines: bool = False) -> ScoredPairs:
    r"""Reads pairs of texts with scores, under the rules of `read_pairs`.

    Args:
        path: A file of lines `text<TAB>text<TAB>number`.
        skip_bad_lines: Whether malformed lines are left out and counted instead of raising.

    Returns:
        The pairs, in the order of the file.

    Raises:
        UserError: The file is missing, unreadable, empty or damaged, a line is malformed, or every
            line was left out.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("scored.tsv").write_text("A cat.\tA kitten.\t4.2\nA cat.\tA car.\t0.5\n")
        >>> read_scored_pairs("scored.tsv").scores
        [4.2, 0.5]
    """
    path = Path(path)
    pairs = ScoredPairs([], [], str(path))
    for source, target, score in good_rows(_rows(path, skip_bad_lines), pairs, skip_bad_lines):
        pairs.sources.append(source)
        pairs.targets.append(target)
        pairs.scores.append(score)
    return pairs


def _rows(path: Path, skip_bad_lines: bool) -> Iterator[Row]:
    for number, line in enumerate(iterate_lines(path, skip_bad_lines), 1):
        *texts, last = columns = (line or "").split("\t")
        score = _number(last)
        if len(columns) == 3 and not any(map(is_empty, columns)) and score is not None:
            yield (*texts, score), None
        else:
            found = f"expected text<TAB>text<TAB>number, found {excerpt(line or '')}"
            yield (), place_of(path, number, 1) + found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
