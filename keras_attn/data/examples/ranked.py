"""Queries and passages as token ids, for models that rank passages."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples.base import IDS, Batch, Examples, Signature
from keras_attn.data.examples.labelled import with_segments
from keras_attn.data.ranked_passages import RankedPassages
from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer, shared_lengths
from keras_attn.validation import UserError, require, require_one_of

LOSSES = ("listwise", "pointwise")
"""What is learned from: lists of passages of a query, or each passage for itself."""

_USUAL = 0.95  # part of the passages that are not longer than the longest that is drawn


@dataclass(frozen=True)
class ListLengths:
    """Numbers of the ids of lists.

    Attributes:
        lengths: Length of each list, (rows,) int64.
        size: Number of passages in a list.
    """

    lengths: np.ndarray
    size: int

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some lists."""
        return self.lengths[rows]

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields nothing: the ids are those of queries and passages."""
        return iter(())

    def release(self) -> None:
        """Does nothing: lengths are in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedExamples(Examples):
    """Lists of passages of a query, of one size.

    A batch of `rows` lists is `({"token_ids": (rows · size, length)}, relevances (rows, size))`:
    each passage behind its query, as `[start] + query + [end] + passage + [end]`. In a listwise
    example the first passage is a relevant one, and the others are less relevant ones of its query
    or, where there are too few, passages of other queries, drawn anew in each epoch. A pointwise
    example is one passage with its relevance as a part of the greatest one; pairs without
    relevances get passages of other queries beside theirs. Relevances are NaN at padding.

    Attributes:
        queries: The different queries.
        passages: The different passages.
        query_of: Query of each list, (rows,).
        passage_of: Its first passage, (rows,).
        relevances: The relevance of that, float32 (rows,).
        candidates: Less relevant passages of the same query for each list.
        own: All passages of each query.
        text: The lengths of the lists.
        size: Number of passages in a list.
        special: Ids of the start and the end.
        format: Arguments `with_start`, `ends_between` and `segments` of a task.
        longest: Most ids of a query and a passage.
        seed: Determines what is drawn.
        epoch: The epoch, which does so too.

    Examples:
        >>> passages = RankedPassages(["ab", "ab"], ["ba", "cc"], relevances=[1.0, 0.0])
        >>> examples = RankedExamples.from_passages(passages, CharacterTokenizer("abc"), size=2)
        >>> inputs, relevances = examples.assemble([0])
        >>> inputs["token_ids"]
        array([[4, 5, 2, 5, 4, 2],
               [4, 5, 2, 6, 6, 2]], dtype=int32)
        >>> relevances
        array([[1., 0.]], dtype=float32)

    Reference:
        Cao et al., 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach"; Nogueira
        and Cho, 2019, "Passage Re-ranking with BERT", https://arxiv.org/abs/1901.04085.
    """

    queries: TokenRows
    passages: TokenRows
    query_of: np.ndarray
    passage_of: np.ndarray
    relevances: np.ndarray
    candidates: Sequence[np.ndarray]
    own: Sequence[frozenset]
    text: ListLengths
    size: int
    special: tuple[int, int]
    format: Any
    longest: int
    seed: int = 0
    epoch: int = 0

    kind: ClassVar = "passage"
    read_units = ("lists", "tokens")

    @classmethod
    def from_passages(
        cls,
        passages: RankedPassages,
        tokenizer: Tokenizer,
        max_length: int = 256,
        loss: str = "listwise",
        size: int = 8,
        with_start: bool = False,
        ends_between: int = 1,
        segments: bool = False,
        seed: int = 0,
    ) -> "RankedExamples":
        """Tokenizes queries and passages.

        Args:
            passages: Queries and passages.
            tokenizer: Tokenizer of both.
            max_length: Most ids of a query and a passage, special ones included; of longer ones the
                ends are left out (see `shared_lengths`).
            loss: One of `LOSSES`.
            size: Number of passages in a list; of passages with relevances a pointwise loss takes
                one.
            with_start: Whether the start id is before a query.
            ends_between: Number of end ids between query and passage, 1 or 2.
            segments: Whether a batch has the segments of queries and passages.
            seed: Determines the passages of other queries.

        Returns:
            A list for each passage that is relevant, or for each passage where the loss is
            pointwise.

        Raises:
            UserError: `max_length` leaves no room, `size` is less than 2, or no list is left.
        """
        require_one_of("loss", loss, LOSSES)
        require(size > 1, "A list has at least two passages.", size=size)
        frame = 1 + with_start + ends_between
        require(
            max_length > frame + 1,
            "`max_length` must leave room for a token.",
            max_length=max_length,
        )
        queries, query_of = _numbered(passages.sources)
        texts, passage_of = _numbered(passages.targets)
        query_rows, passage_rows = (TokenRows.bare(rows, tokenizer) for rows in (queries, texts))
        is_alone, is_listwise = passages.relevances is None, loss == "listwise"
        relevances = np.ones(len(passages)) if is_alone else np.array(passages.relevances, float)
        filled = (query_rows.lengths[query_of] > 0) & (passage_rows.lengths[passage_of] > 0)
        taken = filled & (relevances > 0) if is_listwise else filled
        _require_some(taken, passages, is_listwise)
        groups: list[list[int]] = [[] for _ in queries]
        for row in np.flatnonzero(filled).tolist():
            groups[query_of[row]].append(row)
        rows = np.flatnonzero(taken)
        candidates = [
            _less_relevant(row, groups[query_of[row]], relevances, passage_of)
            if is_listwise
            else np.zeros(0, np.int64)
            for row in rows.tolist()
        ]
        lengths = passage_rows.lengths
        if is_listwise or is_alone:
            usual = np.quantile(lengths, _USUAL, method="higher")
            bounds = np.array(
                [lengths[passage_of[groups[query]]].max() for query in query_of[rows]]
            )
            bounds = np.maximum(bounds, usual)
        else:
            size, bounds = 1, lengths[passage_of[rows]]
        bounds = np.minimum(frame + query_rows.lengths[query_of[rows]] + bounds, max_length)
        whole = frame + query_rows.lengths[query_of] + lengths[passage_of]
        scale = 1.0 if size > 1 else max(relevances.max(), 1e-9)
        return cls(
            queries=query_rows,
            passages=passage_rows,
            query_of=query_of[rows],
            passage_of=passage_of[rows],
            relevances=np.minimum(relevances[rows] / scale, 1.0).astype(np.float32),
            candidates=candidates,
            own=[frozenset(passage_of[group].tolist()) for group in groups],
            text=ListLengths((bounds * size).astype(np.int64), size),
            size=size,
            special=(tokenizer.start_id, tokenizer.end_id),
            format={"with_start": with_start, "ends_between": ends_between, "segments": segments},
            longest=max_length,
            seed=seed,
            indices=rows,
            name=passages.name,
            dropped_empty=int((~filled).sum()),
            truncated=int((whole > max_length)[taken].sum()),
            notes=_notes(query_of, rows),
        )

    @property
    def signature(self) -> Signature:
        """Specifications of a batch."""
        inputs = {"token_ids": IDS} | ({"segment_ids": IDS} if self.format["segments"] else {})
        return inputs, tf.TensorSpec([None, self.size], tf.float32)

    @property
    def text_lengths(self) -> Mapping[str, np.ndarray]:
        """Lengths of one query and passage of each list, (rows,) int64."""
        return {"text": self.text.lengths // self.size}

    def of_epoch(self, epoch: int) -> "RankedExamples":
        """The same lists with the other passages of that epoch."""
        return dataclasses.replace(self, epoch=epoch)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, width = shape
        token_ids = np.zeros((height * self.size, width // self.size), np.int32)
        relevances = np.full((height, self.size), np.nan, np.float32)
        place = 0
        for number, row in enumerate(rows.tolist()):
            found = self._drawn(row)
            relevances[number, : len(found)] = [self.relevances[row], *[0.0] * (len(found) - 1)]
            for passage in found:
                ids = self._joined(int(self.query_of[row]), passage)
                token_ids[place, : len(ids)] = ids
                place += 1
            place = (number + 1) * self.size
        end = self.special[1] if self.format["segments"] else None
        return with_segments(token_ids, end), relevances

    def _drawn(self, row: int) -> list[int]:
        """The passages of a list, the first one first."""
        found, wanted = [int(self.passage_of[row])], self.size - 1
        if not wanted:
            return found
        generator = np.random.default_rng([self.seed, self.epoch, row])
        candidates, own = self.candidates[row], self.own[self.query_of[row]]
        found += generator.permutation(candidates)[:wanted].tolist()
        lengths = self.passages.lengths
        room = self.text.lengths[row] // self.size
        # A tenfold of what is missing is enough, but for tiny data.
        drawn = generator.integers(len(lengths), size=10 * wanted).tolist()
        drawn += generator.permutation(len(lengths)).tolist() if len(lengths) < 100 else []
        frame = self._frame + self.queries.lengths_of(np.array([self.query_of[row]]))[0]
        for other in dict.fromkeys(drawn):
            if len(found) > wanted:
                break
            fits = room == self.longest or frame + lengths[other] <= room
            if other not in own and lengths[other] and fits:
                found.append(other)
        return found

    @property
    def _frame(self) -> int:
        return 1 + self.format["with_start"] + self.format["ends_between"]

    def _joined(self, query: int, passage: int) -> list[int]:
        first, second = self.queries.row(query), self.passages.row(passage)
        room = self.longest - self._frame
        if len(first) + len(second) > room:
            kept = shared_lengths(np.array([len(first)]), np.array([len(second)]), room)
            first, second = (ids[: int(n[0])] for ids, n in zip((first, second), kept, strict=True))
        start, end = self.special
        begins, ends = [start] * self.format["with_start"], [end] * self.format["ends_between"]
        return [*begins, *first, *ends, *second, end]


def _numbered(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The different texts, and which of them each text is."""
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return list(number), np.array([number[text] for text in texts])


def _less_relevant(
    row: int, group: Sequence[int], relevances: np.ndarray, passage_of: np.ndarray
) -> np.ndarray:
    """The passages of a query that are less relevant than that of a row."""
    return np.unique(
        [passage_of[one] for one in group if relevances[one] < relevances[row]]
    ).astype(np.int64)


def _notes(query_of: np.ndarray, rows: np.ndarray) -> tuple[str, ...]:
    """A line about queries without a list."""
    unused = len(np.unique(query_of)) - len(np.unique(query_of[rows]))
    line = f"{unused:,} queries without a relevant passage (training.ranking_loss=pointwise reads"
    return (f"{line} them)",) if unused else ()


def _require_some(taken: np.ndarray, passages: RankedPassages, is_listwise: bool) -> None:
    if not taken.any():
        kind = "relevant passage" if is_listwise else "passage"
        raise UserError(
            f"No {kind} of {passages.name} is left: of {len(passages):,} rows none has tokens of a "
            f"query and of a {kind}."
        )
