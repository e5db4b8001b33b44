"""Pairs of texts as token ids, for an encoder and a decoder."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import IDS, Batch, Examples, kept_rows, shifted
from keras_attn.data.files import Pairs
from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.tokenizers import Tokenizer


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

    Examples:
        >>> pairs = Pairs(["cab", "bad"], ["K AE B", "B AE D"])
        >>> letters, sounds = CharacterTokenizer("abcd"), SymbolTokenizer(["AE", "B", "D", "K"])
        >>> examples = PairExamples.from_pairs(pairs, letters, sounds)
        >>> inputs, labels = examples.assemble([0, 1])
        >>> inputs["target_ids"].tolist()
        [[1, 7, 4, 5], [1, 5, 4, 6]]
        >>> labels.tolist()
        [[7, 4, 5, 2], [5, 4, 6, 2]]
    """

    source: TokenRows
    target: TokenRows
    start_id: int = 1

    kind: ClassVar = "pair"
    signature: ClassVar = ({"source_ids": IDS, "target_ids": IDS}, IDS)
    _sides = ("source", "target")

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
        long_texts: str = "drop",
    ) -> "PairExamples":
        """Tokenizes pairs.

        Args:
            pairs: The texts.
            source_tokenizer: Tokenizer of the sources.
            target_tokenizer: Tokenizer of the targets.
            max_source_length: Longest source sequence that is kept, its end id included.
            max_target_length: Longest target sequence that is kept, its end id included (which
                is also the length of the decoder's input).
            long_texts: Whether pairs with longer ones are left out ("drop") or an "error".

        Returns:
            The pairs that fit; the others are counted.

        Raises:
            UserError: A maximum is not a positive integer, or no pair is left.
        """
        source = TokenRows.from_texts(pairs.sources, source_tokenizer)
        target = TokenRows.from_texts(pairs.targets, target_tokenizer)
        # The end id makes every sequence at least one token long.
        keep, fields = kept_rows(
            (source.lengths == 1) | (target.lengths == 1),
            pairs.name,
            cls.kind,
            long_texts=long_texts,
            max_source_length=(source.lengths, max_source_length),
            max_target_length=(target.lengths, max_target_length),
        )
        return cls(
            source=source.select(keep),
            target=target.select(keep),
            start_id=int(target_tokenizer.start_id),
            **fields,
        )

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        height, source_width, target_width = shape
        labels = self.target.padded(rows, (height, target_width))
        inputs = {
            "source_ids": self.source.padded(rows, (height, source_width)),
            "target_ids": shifted(labels, np.full(len(rows), self.start_id)),
        }
        return inputs, labels
