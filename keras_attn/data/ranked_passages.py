"""Queries and passages, with the relevance of each passage or without."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from keras_attn.data.files import Pairs, joined_names
from keras_attn.data.reading.columns import select
from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading
from keras_attn.data.reading.tables import open_table
from keras_attn.data.text_pairs import tab_in_pair
from keras_attn.validation import require

ROLES = ("query", "passage")
RELEVANCE = "relevance"
"""Parts of an example."""


@dataclass
class RankedPassages(Pairs[str]):
    """Queries as sources, and a passage for each as target; rows of a query belong together.

    Attributes:
        relevances: How relevant each passage is to its query, 0 for not at all; `None` for pairs
            that belong together: every passage is relevant.

    Raises:
        UserError: There are not as many relevances as pairs.

    Examples:
        >>> texts = (["cat?", "cat?"], ["A small animal.", "A large car."])
        >>> passages = RankedPassages(*texts, relevances=[1.0, 0.0])
        >>> passages.groups
        {'cat?': [0, 1]}
    """

    relevances: list[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.relevances is None or len(self.relevances) == len(self),
            "There must be a relevance for each pair.",
            pairs=len(self),
            relevances=len(self.relevances or ()),
        )

    @property
    def groups(self) -> dict[str, list[int]]:
        """The rows of each query."""
        found: dict[str, list[int]] = {}
        for row, query in enumerate(self.sources):
            found.setdefault(query, []).append(row)
        return found

    def select(self, rows: Sequence[int], name: str | None = None) -> "RankedPassages":
        """Some of the rows, under another name."""
        relevances = self.relevances
        return replace(
            self,
            sources=[self.sources[row] for row in rows],
            targets=[self.targets[row] for row in rows],
            relevances=None if relevances is None else [relevances[row] for row in rows],
            name=name or self.name,
        )

    def with_others(self, count: int, seed: int = 0) -> "RankedPassages":
        """Passages of other queries beside those of each query, as irrelevant ones.

        Args:
            count: Number of other passages of each query, fewer where there are not as many.
            seed: Determines which.

        Returns:
            Passages with relevances: these, unchanged, if they have some.
        """
        if self.relevances is not None:
            return self
        passages = list(dict.fromkeys(self.targets))
        queries, found, relevances = [], [], []
        generator = np.random.default_rng(seed)
        for query, rows in self.groups.items():
            own = dict.fromkeys(self.targets[row] for row in rows)
            drawn = generator.choice(len(passages), min(count + len(own), len(passages)), False)
            others = [passages[place] for place in drawn if passages[place] not in own][:count]
            found += [*own, *others]
            queries += [query] * (len(own) + len(others))
            relevances += [1.0] * len(own) + [0.0] * len(others)
        return replace(self, sources=queries, targets=found, relevances=relevances)


def read_ranked_passages(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
) -> RankedPassages:
    r"""Reads queries and passages, under the rules of `read_pairs`.

    Args:
        paths: Tables of `query`, `passage` and perhaps `relevance`, a number from 0 on, such as
            lines `query<TAB>passage<TAB>1`. Without it all passages are relevant.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        columns: Column of each, by default the usual ones.
        encoding: Encoding of the files, UTF-8 by default.

    Returns:
        The rows, in the order of the files.

    Raises:
        UserError: See `read_pairs`; a relevance is no number, or less than 0; or a text has a tab.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("ranked.tsv").write_text("cat?\tA small animal.\t1\ncat?\tA car.\t0\n")
        >>> read_ranked_passages("ranked.tsv").relevances
        [1.0, 0.0]
    """
    files = expanded(paths)
    reading = Reading(joined_names(files), Form(columns, encoding, skip_bad_lines))
    table = open_table(files[0], TabSeparatedTable, encoding, skip_bad_lines=True)
    roles, _ = select(table, ROLES, columns, (RELEVANCE,))
    rows = list(reading.good(reading.tables(files, roles, mistake=mistake_of_passage)))
    queries, passages, *relevances = map(list, zip(*rows, strict=True))
    return RankedPassages(
        queries,
        passages,
        reading.name,
        reading.skipped,
        reading.remarks,
        relevances=relevances[0] if relevances else None,
    )


def mistake_of_passage(query: str, passage: str, relevance: float = 0.0) -> str | None:
    """Describes a negative relevance or a text with a tab, or returns `None`."""
    if relevance < 0:
        return f"expected a relevance from 0 on, found {relevance:g}"
    return tab_in_pair(query, passage)
