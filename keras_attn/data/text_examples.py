"""Texts as token ids, for a language model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples import Batch, Examples, shifted
from keras_attn.data.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require_positive

_IDS = tf.TensorSpec([None, None], tf.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class TextExamples(Examples):
    """Tokenized texts; texts that are too long are cut into pieces.

    A batch is `({"token_ids": (rows, length)}, labels (rows, length))`: for a text `y` the model's
    input is `[start] + y`, the labels `y + [end]`. A piece from the middle of a text begins with
    the token before it instead of the start.

    Attributes:
        text: The pieces, the end id after the last one of each text.
        first_ids: The id that each piece's input starts with, int32 (rows,).
    """

    text: TokenRows
    first_ids: np.ndarray

    signature: ClassVar = ({"token_ids": _IDS}, _IDS)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        tokenizer: Tokenizer,
        max_length: int | None = None,
        name: str = "texts",
    ) -> "TextExamples":
        """Tokenizes texts.

        Args:
            texts: The texts.
            tokenizer: Tokenizer of the texts.
            max_length: Length of the longest piece; None to keep texts whole.
            name: Where the texts come from, for messages.

        Returns:
            All texts that have a token; the others are counted.

        Raises:
            UserError: `max_length` is not a positive integer, or no text is left.
        """
        rows = TokenRows.from_texts(texts, tokenizer)
        keep = rows.lengths > 1
        if not keep.any():
            raise UserError(f"No text of {name} is left: none of {len(texts):,} texts has a token.")
        rows, indices = rows.select(keep), np.flatnonzero(keep)
        first_ids = np.full(len(rows), tokenizer.start_id, np.int32)
        if max_length is not None:
            require_positive(max_length=max_length)
            rows, pieces = rows.cut(max_length)
            indices = np.repeat(indices, pieces)
            begins = np.cumsum(pieces) - pieces  # the first piece of each text
            # The id before each piece; the first piece of a text has none.
            first_ids = rows.ids[rows.offsets[:-1] - 1]
            first_ids[begins] = tokenizer.start_id
        return cls(
            text=rows,
            first_ids=first_ids,
            indices=indices,
            name=name,
            dropped_empty=int((~keep).sum()),
        )

    @property
    def sides(self) -> dict[str, TokenRows]:
        """The pieces."""
        return {"text": self.text}

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        labels = self.text.padded(rows, shape)
        return {"token_ids": shifted(labels, self.first_ids[rows])}, labels
