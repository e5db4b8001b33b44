"""Texts as token ids, some of them hidden, for a masked language model."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import IDS, Batch, Examples, cut_rows
from keras_attn.data.masking import Masking
from keras_attn.data.stored.token_rows import FRAME, TokenRows, framed, require_room


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskedExamples(Examples):
    """Tokenized texts with some tokens hidden; texts that are too long are cut into pieces.

    A batch is `({"token_ids": (rows, length), "positions": (rows, count)}, labels (rows, count))`:
    each text or piece as `[start] + text + [end]` with some tokens hidden, the positions to
    predict, and the original ids, 0 where a row has fewer. The hidden tokens depend only on the
    seed, the epoch and the piece, not on the batch.

    Attributes:
        text: The pieces between their start and end ids.
        masking: How tokens are chosen and hidden.
        seed: Determines the hidden tokens together with `epoch`.
        epoch: Number of the epoch; every epoch hides other tokens.

    Examples:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "ran"]
        >>> masking = Masking(WordPieceTokenizer(tokens))
        >>> texts = ["the cat sat", "the cat ran"]
        >>> examples = MaskedExamples.from_texts(texts, masking, max_length=8, seed=3)
        >>> inputs, labels = examples.of_epoch(0).assemble([0, 1])
        >>> inputs["token_ids"].tolist()
        [[2, 5, 6, 4, 3], [2, 4, 6, 8, 3]]
        >>> inputs["positions"].tolist(), labels.tolist()
        ([[3], [1]], [[7], [5]])
    """

    text: TokenRows
    masking: Masking
    seed: int = 0
    epoch: int = 0

    signature: ClassVar = ({"token_ids": IDS, "positions": IDS}, IDS)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        masking: Masking,
        max_length: int,
        name: str = "texts",
        seed: int = 0,
    ) -> "MaskedExamples":
        """Tokenizes texts.

        Args:
            texts: The texts.
            masking: The masking, with the tokenizer of the texts.
            max_length: Most ids of a piece, start and end included.
            name: Where the texts come from, for messages.
            seed: Determines the hidden tokens.

        Returns:
            All texts that have a token; the others are counted.

        Raises:
            UserError: `max_length` is less than 3, or no text is left.
        """
        require_room(max_length)
        rows = TokenRows.bare(texts, masking.tokenizer)
        rows, _, fields = cut_rows(rows, rows.lengths > 0, max_length - FRAME, name)
        return cls(text=framed(rows, masking.tokenizer), masking=masking, seed=seed, **fields)

    def of_epoch(self, epoch: int) -> "MaskedExamples":
        """The same texts with the tokens of that epoch hidden."""
        return dataclasses.replace(self, epoch=epoch)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, width = shape
        token_ids = self.text.padded(rows, shape)
        positions, labels = np.zeros((2, height, self.masking.most(width)), np.int32)
        lengths = self.text.lengths_of(rows).tolist()
        for place, (row, length) in enumerate(zip(rows.tolist(), lengths, strict=True)):
            masked, chosen, guessed = self.masking.drawn(
                token_ids[place, :length], [self.seed, self.epoch, row]
            )
            token_ids[place, :length] = masked
            positions[place, : len(chosen)] = chosen
            labels[place, : len(chosen)] = guessed
        return {"token_ids": token_ids, "positions": positions}, labels
