"""Pairs of texts with equal meaning as token ids, for text embeddings."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples import Batch, Examples
from keras_attn.data.files import Pairs
from keras_attn.data.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require

_IDS = tf.TensorSpec([None, None], tf.int32)
_FRAME = 2  # the start and the end id


@dataclass(frozen=True, eq=False, kw_only=True)
class PartnerExamples(Examples):
    """Tokenized pairs of texts with equal meaning.

    A batch of `rows` pairs is `({"token_ids": (2 · rows, length)}, labels (2 · rows, length))`: the
    sources, followed by their targets, each as `[start] + text + [end]`. The label of a token is
    the number of its text; equal texts have the same number.

    Attributes:
        source: The sources between their start and end ids.
        target: The targets between their start and end ids.
        numbers: The number of each text, int32 (rows, 2), counted from 1.
    """

    source: TokenRows
    target: TokenRows
    numbers: np.ndarray

    kind: ClassVar = "pair"
    signature: ClassVar = ({"token_ids": _IDS}, _IDS)

    @classmethod
    def from_pairs(cls, pairs: Pairs, tokenizer: Tokenizer, max_length: int) -> "PartnerExamples":
        """Tokenizes pairs.

        Args:
            pairs: The texts.
            tokenizer: Tokenizer of sources and targets.
            max_length: Most ids of a text, start and end included; the end of a longer text is
                left out.

        Returns:
            The pairs of texts that have a token; the others are counted.

        Raises:
            UserError: `max_length` is less than 3, or no pair is left.
        """
        require(
            max_length > _FRAME,
            "`max_length` must be at least 3: a start, a token and an end.",
            max_length=max_length,
        )
        source, target = (
            TokenRows.bare(texts, tokenizer) for texts in (pairs.sources, pairs.targets)
        )
        keep = (source.lengths > 0) & (target.lengths > 0)
        if not keep.any():
            raise UserError(f"No pair of {pairs.name} is left: none of {len(pairs):,} has tokens.")
        number: dict[str, int] = {}
        numbers = [
            [number.setdefault(text, len(number) + 1) for text in pair]
            for pair in zip(pairs.sources, pairs.targets, strict=True)
        ]
        source, target = (
            rows.select(keep)
            .truncated(max_length - _FRAME)
            .with_first(tokenizer.start_id)
            .with_last(tokenizer.end_id)
            for rows in (source, target)
        )
        return cls(
            source=source,
            target=target,
            numbers=np.array(numbers, np.int32)[keep],
            indices=np.flatnonzero(keep),
            name=pairs.name,
            dropped_empty=int((~keep).sum()),
        )

    @property
    def sides(self) -> dict[str, TokenRows]:
        """Sources and targets."""
        return {"source": self.source, "target": self.target}

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, *widths = shape
        whole = (height, max(widths))
        token_ids = [side.padded(rows, whole) for side in (self.source, self.target)]
        numbers = np.zeros((height, 2), np.int32)
        numbers[: len(rows)] = self.numbers[rows]
        labels = [
            np.where(ids == 0, 0, column[:, None])
            for ids, column in zip(token_ids, numbers.T, strict=True)
        ]
        return {"token_ids": np.concatenate(token_ids)}, np.concatenate(labels)
