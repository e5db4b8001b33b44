"""Pairs of texts with equal meaning as token ids, for text embeddings."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import IDS, Batch, Examples
from keras_attn.data.files import Pairs
from keras_attn.data.split import numbered
from keras_attn.data.stored.token_rows import FRAME, TokenRows, framed, require_room
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError


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

    Examples:
        >>> pairs = Pairs(["a cab", "bad"], ["a taxi", "sad"])
        >>> tokenizer = CharacterTokenizer("abcdistx ")
        >>> examples = PartnerExamples.from_pairs(pairs, tokenizer, max_length=16)
        >>> inputs, labels = examples.assemble([0, 1])
        >>> inputs["token_ids"].shape, labels[:, 0].tolist()
        ((4, 8), [1, 3, 2, 4])
    """

    source: TokenRows
    target: TokenRows
    numbers: np.ndarray

    kind: ClassVar = "pair"
    signature: ClassVar = ({"token_ids": IDS}, IDS)
    _sides = ("source", "target")

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
        require_room(max_length)
        source, target = (
            TokenRows.bare(texts, tokenizer) for texts in (pairs.sources, pairs.targets)
        )
        keep = (source.lengths > 0) & (target.lengths > 0)
        if not keep.any():
            raise UserError(f"No pair of {pairs.name} is left: none of {len(pairs):,} has tokens.")
        numbers = numbered(pairs.sources, pairs.targets) + 1
        longer = np.stack([source.lengths, target.lengths])[:, keep] > max_length - FRAME
        source, target = (
            framed(rows.select(keep).truncated(max_length - FRAME), tokenizer)
            for rows in (source, target)
        )
        return cls(
            source=source,
            target=target,
            numbers=numbers[keep].astype(np.int32),
            indices=np.flatnonzero(keep),
            name=pairs.name,
            dropped_empty=int((~keep).sum()),
            truncated=int(longer.any(axis=0).sum()),
        )

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, *widths = shape
        whole = (height, max(widths))
        token_ids = [side.padded(rows, whole) for side in (self.source, self.target)]
        numbers = np.pad(self.numbers[rows], ((0, height - len(rows)), (0, 0)))
        labels = [
            np.where(ids == 0, 0, column[:, None])
            for ids, column in zip(token_ids, numbers.T, strict=True)
        ]
        return {"token_ids": np.concatenate(token_ids)}, np.concatenate(labels)
