"""Texts as token ids, for a language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import IDS, Batch, Examples, cut_rows, shifted
from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require_positive


@dataclass(frozen=True, eq=False, kw_only=True)
class TextExamples(Examples):
    """Tokenized texts; texts that are too long are cut into pieces.

    A batch is `({"token_ids": (rows, length)}, labels (rows, length))`: for a text `y` the model's
    input is `[start] + y`, the labels `y + [end]`. A piece from the middle of a text begins with
    the token before it instead of the start.

    Attributes:
        text: The pieces, the end id after the last one of each text.
        first_ids: The id that each piece's input starts with, int32 (rows,).

    Examples:
        >>> texts = ["cab", "decade"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"), max_length=8)
        >>> inputs, labels = examples.assemble([0])
        >>> inputs["token_ids"], labels
        (array([[1, 6, 4, 5]], dtype=int32), array([[6, 4, 5, 2]], dtype=int32))
    """

    text: TokenRows
    first_ids: np.ndarray

    signature: ClassVar = ({"token_ids": IDS}, IDS)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
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
        if max_length is not None:
            require_positive(max_length=max_length)
        rows, pieces, fields = cut_rows(rows, rows.lengths > 1, max_length, name)
        # The id before each piece; the first piece of a text has none.
        first_ids = rows.previous()
        first_ids[np.cumsum(pieces) - pieces] = tokenizer.start_id
        return cls(text=rows, first_ids=first_ids, **fields)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        labels = self.text.padded(rows, shape)
        return {"token_ids": shifted(labels, self.first_ids[rows])}, labels
