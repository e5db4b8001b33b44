"""Texts as token ids without some of their spans, and the spans, for an encoder and a decoder."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples import Batch, Examples, shifted
from keras_attn.data.pair_examples import PairExamples
from keras_attn.data.span_corruption import SpanCorruption
from keras_attn.data.token_rows import TokenRows
from keras_attn.validation import UserError


@dataclass(frozen=True, eq=False)
class CorruptedRows:
    """One side of texts that are corrupted anew in each epoch, always to the same lengths.

    Attributes:
        content: The ids of all texts, int32.
        lengths: Length of each row, its end id included, (rows,) int64.
    """

    content: np.ndarray
    lengths: np.ndarray

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        return self.lengths[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class CorruptedExamples(Examples):
    """Tokenised texts, those that are too long in pieces, of which spans are dropped.

    A batch is that of pairs (see `PairExamples`): the source is a text with sentinels in the places
    of its dropped spans, the target these spans after their sentinels. What is dropped depends on
    the seed, the epoch and the piece alone, and not on the batch.

    Attributes:
        text: The pieces, without end ids.
        corruption: How spans are chosen and replaced.
        source: Lengths of the corrupted pieces.
        target: Lengths of the targets.
        seed: Decides what is drawn, together with `epoch`.
        epoch: Number of the epoch, in each of which other spans are dropped.
    """

    text: TokenRows
    corruption: SpanCorruption
    source: CorruptedRows
    target: CorruptedRows
    seed: int = 0
    epoch: int = 0

    signature: ClassVar = PairExamples.signature

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        corruption: SpanCorruption,
        max_source_length: int,
        max_target_length: int | None = None,
        name: str = "texts",
        seed: int = 0,
    ) -> "CorruptedExamples":
        """Tokenises texts once.

        Args:
            texts: The texts.
            corruption: With their tokenizer.
            max_source_length: Most ids of a piece when it is corrupted, its end id included: a
                text is cut into pieces that are as long as that allows.
            max_target_length: Most ids of a target, likewise; None for any number.
            name: Where the texts come from, for messages.
            seed: Decides what is dropped.

        Returns:
            All texts that have a token; the others are counted.

        Raises:
            UserError: A maximum leaves no room for a token, no text is left, or there are not
                enough sentinels.
        """
        longest = corruption.longest_text(max_source_length, max_target_length)
        rows = TokenRows.bare(texts, corruption.tokenizer)
        keep = rows.lengths > 0
        if not keep.any():
            raise UserError(f"No text of {name} is left: none of {len(texts):,} texts has a token.")
        rows, pieces = rows.select(keep).cut(longest)
        corruption.check_sentinels(int(rows.lengths.max()))
        source, target = (
            CorruptedRows(rows.content, lengths) for lengths in corruption.lengths(rows.lengths)
        )
        return cls(
            text=rows,
            corruption=corruption,
            source=source,
            target=target,
            seed=seed,
            indices=np.repeat(np.flatnonzero(keep), pieces),
            name=name,
            dropped_empty=int((~keep).sum()),
        )

    @property
    def sides(self) -> dict[str, CorruptedRows]:
        """Corrupted pieces and targets."""
        return {"source": self.source, "target": self.target}

    def of_epoch(self, epoch: int) -> "CorruptedExamples":
        """The same texts, without the spans that are dropped in that epoch."""
        return dataclasses.replace(self, epoch=epoch)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, source_width, target_width = shape
        tokenizer = self.corruption.tokenizer
        source_ids = np.zeros((height, source_width), np.int32)
        labels = np.zeros((height, target_width), np.int32)
        for place, row in enumerate(rows.tolist()):
            ids = self.text.ids[self.text.offsets[row] : self.text.offsets[row + 1]]
            drawn = self.corruption.drawn(ids, [self.seed, self.epoch, row])
            for side, sequence in zip((source_ids, labels), drawn, strict=True):
                side[place, : len(sequence)] = sequence
                side[place, len(sequence)] = tokenizer.end_id
        first_ids = np.full(len(rows), tokenizer.start_id)
        return {"source_ids": source_ids, "target_ids": shifted(labels, first_ids)}, labels
