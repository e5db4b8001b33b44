"""Pairs as token ids, kept in memory as flat arrays."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_attn.data.files import Pairs
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require_positive

_TEXTS_A_CALL = 8192


@dataclass(frozen=True, eq=False)
class PairExamples:
    """Tokenised pairs, ready to be put into batches in any order.

    Row `i` is the source `x` and the target `y` of one pair. Both are kept with the end id:
    `source_ids[source_offsets[i]:source_offsets[i + 1]]` is `x + [end]`, the target alike.
    Lengths count the end id.

    Attributes:
        source_ids: All source sequences one after the other, int32.
        source_offsets: Where they begin and end, (rows + 1,) int64.
        target_ids: All target sequences one after the other, int32.
        target_offsets: Where they begin and end, (rows + 1,) int64.
        pair_indices: The position of each row among the pairs that it was made from, int64.
        start_id: The id that a decoder's input starts with.
        name: Where the pairs come from, for messages.
        dropped_long: How many pairs exceeded a maximum length.
        dropped_empty: How many pairs had a source or a target without a single token.
    """

    source_ids: np.ndarray
    source_offsets: np.ndarray
    target_ids: np.ndarray
    target_offsets: np.ndarray
    pair_indices: np.ndarray
    start_id: int = 1
    name: str = "pairs"
    dropped_long: int = 0
    dropped_empty: int = 0

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
    ) -> "PairExamples":
        """Tokenises pairs once, in large batches inside the tokenizers' graph.

        Args:
            pairs: The texts.
            source_tokenizer: Of the sources.
            target_tokenizer: Of the targets.
            max_source_length: Longest source sequence that is kept, its end id included.
            max_target_length: Longest target sequence that is kept, its end id included (which
                is also the length of the decoder's input).

        Returns:
            The pairs that fit; the others are counted.

        Raises:
            UserError: A maximum is not a positive integer, or no pair is left.
        """
        sources, source_lengths = _tokenize(pairs.sources, source_tokenizer)
        targets, target_lengths = _tokenize(pairs.targets, target_tokenizer)
        # The end id makes every sequence at least one token long.
        empty = (source_lengths == 1) | (target_lengths == 1)
        long = np.zeros(len(pairs), bool)
        for name, maximum, lengths in (
            ("max_source_length", max_source_length, source_lengths),
            ("max_target_length", max_target_length, target_lengths),
        ):
            if maximum is not None:
                require_positive(**{name: maximum})
                long |= lengths > maximum
        keep = ~(empty | long)
        if not keep.any():
            raise UserError(
                f"No pair of {pairs.name} is left: of {len(pairs):,} pairs {empty.sum():,} have "
                f"no token and {(long & ~empty).sum():,} are too long. Received: "
                f"max_source_length={max_source_length}, max_target_length={max_target_length}."
            )
        return cls(
            sources[np.repeat(keep, source_lengths)],
            _offsets(source_lengths[keep]),
            targets[np.repeat(keep, target_lengths)],
            _offsets(target_lengths[keep]),
            np.flatnonzero(keep),
            int(target_tokenizer.start_id),
            pairs.name,
            int((long & ~empty).sum()),
            int(empty.sum()),
        )

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    @property
    def dropped(self) -> int:
        """How many pairs were left out, too long or without a token."""
        return self.dropped_long + self.dropped_empty

    @property
    def source_lengths(self) -> np.ndarray:
        """Length of each row's source with its end id, (rows,) int64."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> np.ndarray:
        """Length of each row's target with its end id, (rows,) int64."""
        return np.diff(self.target_offsets)

    def assemble(
        self, indices: np.ndarray, pad_to: tuple[int, int, int] | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Puts rows into one padded batch.

        Args:
            indices: The rows, (count,) integers.
            pad_to: The shape `(rows, source length, target length)` to pad to; None for the
                number of rows and the lengths of the longest of them.

        Returns:
            `({"source_ids": (rows, S), "target_ids": (rows, T)}, labels (rows, T))`, all int32
            and padded on the right with 0: the sources `x + [end]`, the decoder's inputs
            `[start] + y` and the labels `y + [end]`. Rows past `indices` are all padding.

        Raises:
            UserError: The batch does not fit into `pad_to`.
        """
        indices = np.asarray(indices, np.int64)
        source_lengths = self.source_offsets[indices + 1] - self.source_offsets[indices]
        target_lengths = self.target_offsets[indices + 1] - self.target_offsets[indices]
        fitting = (len(indices), source_lengths.max(initial=0), target_lengths.max(initial=0))
        shape = tuple(int(size) for size in (fitting if pad_to is None else pad_to))
        if any(size < needed for size, needed in zip(shape, fitting, strict=True)):
            raise UserError(
                "`pad_to` must hold the batch, as (rows, source length, target length) at least "
                f"{tuple(int(size) for size in fitting)}. Received: pad_to={shape}."
            )
        rows, source_width, target_width = shape
        source_ids = _padded(
            self.source_ids, self.source_offsets[indices], source_lengths, (rows, source_width)
        )
        labels = _padded(
            self.target_ids, self.target_offsets[indices], target_lengths, (rows, target_width)
        )
        target_ids = np.zeros_like(labels)
        # The decoder's input is the labels one place later, without the end id that falls on a
        # place that is padding in the labels.
        target_ids[:, 1:] = np.where(labels[:, 1:] == 0, 0, labels[:, :-1])
        target_ids[: len(indices), :1] = self.start_id
        return {"source_ids": source_ids, "target_ids": target_ids}, labels


def _tokenize(texts: list[str], tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """All sequences with their end ids one after the other (int32), and their lengths (int64)."""
    tokenize = tf.function(tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    flat, lengths = [], []
    with tf.device("CPU"):
        for begin in range(0, len(texts), _TEXTS_A_CALL):
            ragged = tokenize(tf.constant(texts[begin : begin + _TEXTS_A_CALL], tf.string))
            flat.append(ragged.values.numpy().astype(np.int32, copy=False))
            lengths.append(ragged.row_lengths().numpy().astype(np.int64, copy=False))
    ids = np.concatenate([np.zeros(0, np.int32), *flat])
    counts = np.concatenate([np.zeros(0, np.int64), *lengths])
    return np.insert(ids, np.cumsum(counts), np.int32(tokenizer.end_id)), counts + 1


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _padded(
    ids: np.ndarray, begins: np.ndarray, lengths: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """The sequences `ids[begin : begin + length]` as rows of an array padded with 0."""
    batch = np.zeros(shape, ids.dtype)
    columns = np.arange(shape[1])
    inside = columns < lengths[:, None]  # (count, width)
    batch[: len(begins)][inside] = ids[(begins[:, None] + columns)[inside]]
    return batch
