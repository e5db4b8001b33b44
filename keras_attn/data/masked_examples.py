"""Texts as token ids, some of them hidden, for a masked language model."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples import Batch, Examples
from keras_attn.data.masking import Masking
from keras_attn.data.token_rows import TokenRows
from keras_attn.validation import UserError, require

_IDS = tf.TensorSpec([None, None], tf.int32)
_FRAME = 2  # the start and the end id


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
    """

    text: TokenRows
    masking: Masking
    seed: int = 0
    epoch: int = 0

    signature: ClassVar = ({"token_ids": _IDS, "positions": _IDS}, _IDS)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
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
        require(
            max_length > _FRAME,
            "`max_length` must be at least 3: a start, a token and an end.",
            max_length=max_length,
        )
        tokenizer = masking.tokenizer
        rows = TokenRows.bare(texts, tokenizer)
        keep = rows.lengths > 0
        if not keep.any():
            raise UserError(f"No text of {name} is left: none of {len(texts):,} texts has a token.")
        rows, pieces = rows.select(keep).cut(max_length - _FRAME)
        return cls(
            text=rows.with_first(tokenizer.start_id).with_last(tokenizer.end_id),
            masking=masking,
            seed=seed,
            indices=np.repeat(np.flatnonzero(keep), pieces),
            name=name,
            dropped_empty=int((~keep).sum()),
        )

    @property
    def sides(self) -> dict[str, TokenRows]:
        """The pieces."""
        return {"text": self.text}

    def of_epoch(self, epoch: int) -> "MaskedExamples":
        """The same texts with the tokens of that epoch hidden."""
        return dataclasses.replace(self, epoch=epoch)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, width = shape
        token_ids = self.text.padded(rows, shape)
        positions, labels = np.zeros((2, height, self.masking.most(width)), np.int32)
        for place, row in enumerate(rows.tolist()):
            length = self.text.offsets[row + 1] - self.text.offsets[row]
            masked, chosen, guessed = self.masking.drawn(
                token_ids[place, :length], [self.seed, self.epoch, row]
            )
            token_ids[place, :length] = masked
            positions[place, : len(chosen)] = chosen
            labels[place, : len(chosen)] = guessed
        return {"token_ids": token_ids, "positions": positions}, labels
