"""Texts for span corruption: token ids with spans removed, and the removed spans as targets."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import Batch, Examples, cut_rows, shifted
from keras_attn.data.examples.pair import PairExamples
from keras_attn.data.span_corruption import SpanCorruption
from keras_attn.data.stored.token_rows import TokenRows


@dataclass(frozen=True, eq=False)
class CorruptedRows:
    """One side of texts that are corrupted differently in each epoch, always to the same lengths.

    Attributes:
        text: The texts.
        lengths: Length of each row, its end id included, (rows,) int64.
    """

    text: TokenRows
    lengths: np.ndarray

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields the ids of all texts in pieces, int32."""
        return self.text.blocks()

    def release(self) -> None:
        """Gives back the memory of ids that are in a file."""
        self.text.release()

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        return self.lengths[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class CorruptedExamples(Examples):
    """Tokenized texts with spans removed; texts that are too long are cut into pieces.

    A batch has the form of `PairExamples`: the source is a text in which sentinel tokens replace
    the removed spans, the target consists of these spans, each after its sentinel. The removed
    spans depend only on the seed, the epoch and the piece, not on the batch.

    Attributes:
        text: The pieces, without end ids.
        corruption: How spans are chosen and replaced.
        source: Lengths of the corrupted pieces.
        target: Lengths of the targets.
        seed: Determines the random spans together with `epoch`.
        epoch: Number of the epoch; every epoch removes other spans.

    Examples:
        >>> texts = ["thank you for inviting me to your party last week"]
        >>> tokenizer = train_tokenizer("sentencepiece", texts, vocabulary_size=36, sentinels=4)
        >>> corruption = SpanCorruption(tokenizer)
        >>> examples = CorruptedExamples.from_texts(texts, corruption, max_source_length=64)
        >>> for epoch in (0, 1):  # each removes other spans
        ...     inputs, labels = examples.of_epoch(epoch).assemble([0])
        ...     print(tokenizer.detokenize(labels).numpy()[0].decode())
        <extra_id_0>o you<extra_id_1> last<extra_id_2>
        <extra_id_0> me<extra_id_1>t w<extra_id_2>
    """

    text: TokenRows
    corruption: SpanCorruption
    source: CorruptedRows
    target: CorruptedRows
    seed: int = 0
    epoch: int = 0

    signature: ClassVar = PairExamples.signature
    _sides = ("source", "target")

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        corruption: SpanCorruption,
        max_source_length: int,
        max_target_length: int | None = None,
        name: str = "texts",
        seed: int = 0,
    ) -> "CorruptedExamples":
        """Tokenizes texts.

        Args:
            texts: The texts.
            corruption: The corruption, with the tokenizer of the texts.
            max_source_length: Most ids of a corrupted piece, its end id included; texts are cut
                into the longest pieces that this allows.
            max_target_length: Most ids of a target, its end id included; None for no limit.
            name: Where the texts come from, for messages.
            seed: Determines the removed spans.

        Returns:
            All texts that have a token; the others are counted.

        Raises:
            UserError: A maximum leaves no room for a token, no text is left, or there are not
                enough sentinels.
        """
        longest = corruption.longest_text(max_source_length, max_target_length)
        rows = TokenRows.bare(texts, corruption.tokenizer)
        rows, _, fields = cut_rows(rows, rows.lengths > 0, longest, name)
        corruption.check_sentinels(int(rows.lengths.max()))
        source, target = (
            CorruptedRows(rows, lengths) for lengths in corruption.lengths(rows.lengths)
        )
        return cls(
            text=rows, corruption=corruption, source=source, target=target, seed=seed, **fields
        )

    def of_epoch(self, epoch: int) -> "CorruptedExamples":
        """The same texts with the spans of that epoch removed."""
        return dataclasses.replace(self, epoch=epoch)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, source_width, target_width = shape
        tokenizer = self.corruption.tokenizer
        source_ids = np.zeros((height, source_width), np.int32)
        labels = np.zeros((height, target_width), np.int32)
        for place, row in enumerate(rows.tolist()):
            drawn = self.corruption.drawn(self.text.row(row), [self.seed, self.epoch, row])
            for side, sequence in zip((source_ids, labels), drawn, strict=True):
                side[place, : len(sequence)] = sequence
                side[place, len(sequence)] = tokenizer.end_id
        first_ids = np.full(len(rows), tokenizer.start_id)
        return {"source_ids": source_ids, "target_ids": shifted(labels, first_ids)}, labels
