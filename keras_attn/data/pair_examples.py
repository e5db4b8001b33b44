"""Pairs of texts as token ids, for an encoder and a decoder."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples import Batch, Examples, shifted
from keras_attn.data.files import Pairs
from keras_attn.data.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require_positive

_IDS = tf.TensorSpec([None, None], tf.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairExamples(Examples):
    """Tokenized pairs of sources and targets.

    A batch is `({"source_ids": (rows, S), "target_ids": (rows, T)}, labels (rows, T))`: of a
    source `x` and a target `y` the source `x + [end]`, the decoder's input `[start] + y` and the
    labels `y + [end]`.

    Attributes:
        source: The sources, the end id after each.
        target: The targets, the end id after each.
        start_id: The id that a decoder's input starts with.
    """

    source: TokenRows
    target: TokenRows
    start_id: int = 1

    kind: ClassVar = "pair"
    signature: ClassVar = ({"source_ids": _IDS, "target_ids": _IDS}, _IDS)

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
    ) -> "PairExamples":
        """Tokenizes pairs.

        Args:
            pairs: The texts.
            source_tokenizer: Tokenizer of the sources.
            target_tokenizer: Tokenizer of the targets.
            max_source_length: Longest source sequence that is kept, its end id included.
            max_target_length: Longest target sequence that is kept, its end id included (which
                is also the length of the decoder's input).

        Returns:
            The pairs that fit; the others are counted.

        Raises:
            UserError: A maximum is not a positive integer, or no pair is left.
        """
        source = TokenRows.from_texts(pairs.sources, source_tokenizer)
        target = TokenRows.from_texts(pairs.targets, target_tokenizer)
        # The end id makes every sequence at least one token long.
        empty = (source.lengths == 1) | (target.lengths == 1)
        long = np.zeros(len(pairs), bool)
        for name, maximum, rows in (
            ("max_source_length", max_source_length, source),
            ("max_target_length", max_target_length, target),
        ):
            if maximum is not None:
                require_positive(**{name: maximum})
                long |= rows.lengths > maximum
        keep = ~(empty | long)
        if not keep.any():
            raise UserError(
                f"No pair of {pairs.name} is left: of {len(pairs):,} pairs {empty.sum():,} have "
                f"no token and {(long & ~empty).sum():,} are too long. Received: "
                f"max_source_length={max_source_length}, max_target_length={max_target_length}."
            )
        return cls(
            source=source.select(keep),
            target=target.select(keep),
            start_id=int(target_tokenizer.start_id),
            indices=np.flatnonzero(keep),
            name=pairs.name,
            dropped_long=int((long & ~empty).sum()),
            dropped_empty=int(empty.sum()),
        )

    @property
    def sides(self) -> dict[str, TokenRows]:
        """Sources and targets."""
        return {"source": self.source, "target": self.target}

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, source_width, target_width = shape
        labels = self.target.padded(rows, (height, target_width))
        inputs = {
            "source_ids": self.source.padded(rows, (height, source_width)),
            "target_ids": shifted(labels, np.full(len(rows), self.start_id)),
        }
        return inputs, labels
