"""Base class of tokenized and decoded examples, from which batches are made."""

import abc
import dataclasses
import functools
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import tensorflow as tf

from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.validation import UserError, require_one_of, require_positive

Batch = tuple[dict[str, np.ndarray], np.ndarray]
Signature = tuple[dict[str, tf.TensorSpec], tf.TensorSpec]


class Rows(Protocol):
    """One side of examples, a row for each: sequences of ids, or images.

    Attributes:
        lengths: Length of each row, (rows,) int64.
    """

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields the data of all rows in pieces, to check that all machines read the same."""
        ...

    def release(self) -> None:
        """Gives back the memory of data that are in a file."""
        ...

    @property
    def lengths(self) -> np.ndarray:  # noqa: D102
        ...

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        ...


IDS = tf.TensorSpec([None, None], tf.int32)
"""Specification of a batch of padded ids."""


LONG_TEXTS = ("cut", "drop", "error")
"""What can be done with texts that are too long."""


def kept_rows(
    empty: np.ndarray,
    name: str,
    kind: str = "text",
    unit: str = "token",
    long_texts: str = "drop",
    **limits: tuple[np.ndarray, int | None],
) -> tuple[np.ndarray, dict[str, Any]]:
    """Chooses the examples to keep: those that are not empty, and not too long to be kept.

    Args:
        empty: Whether an example has no token, (examples,).
        name: Where the examples come from, for an error.
        kind: What one example is called, for an error.
        unit: What an empty example lacks, for an error.
        long_texts: What is done with those that are too long, one of `LONG_TEXTS`; the caller cuts.
        **limits: By setting, the length of each example, (examples,), and the longest that is kept;
            `None` for no limit.

    Returns:
        Whether an example is kept, (examples,); and the fields of `Examples`.

    Raises:
        UserError: A limit is not a positive integer, no example is left, or one is too long and
            that is to be an error.
    """
    require_one_of("long_texts", long_texts, LONG_TEXTS)
    long = np.zeros(len(empty), bool)
    for setting, (lengths, longest) in limits.items():
        if longest is not None:
            require_positive(**{setting: longest})
            long |= lengths > longest
    long &= ~empty
    received = ", ".join(f"{setting}={longest}" for setting, (_, longest) in limits.items())
    if long_texts == "error" and long.any():
        raise UserError(
            f"{long.sum():,} {kind}s of {name} are too long, the first one is number "
            f"{long.argmax() + 1:,}. Received: {received}, long_texts='error'."
        )
    keep = ~empty if long_texts == "cut" else ~(empty | long)
    if not keep.any():
        raise UserError(
            f"No {kind} of {name} is left: of {len(empty):,} {kind}s {empty.sum():,} have no "
            f"{unit} and {long.sum():,} are too long. Received: {received}."
        )
    return keep, {
        "indices": np.flatnonzero(keep),
        "name": name,
        "truncated": int(long.sum()) if long_texts == "cut" else 0,
        "dropped_long": 0 if long_texts == "cut" else int(long.sum()),
        "dropped_empty": int(empty.sum()),
    }


def cut_rows(
    rows: TokenRows, keep: np.ndarray, longest: int | None, name: str
) -> tuple[TokenRows, np.ndarray, dict[str, Any]]:
    """Cuts the texts to keep into pieces.

    Args:
        rows: The texts.
        keep: Whether a text has a token, (texts,).
        longest: Most ids of a piece; `None` for no limit.
        name: Where the texts come from, for an error.

    Returns:
        The pieces, the number of pieces of each kept text, and the fields of `Examples`.

    Raises:
        UserError: No text is left.
    """
    if not keep.any():
        raise UserError(f"No text of {name} is left: none of {len(keep):,} texts has a token.")
    rows, pieces = rows.select(keep).cut(longest or int(rows.lengths.max()))
    return (
        rows,
        pieces,
        {
            "indices": np.repeat(np.flatnonzero(keep), pieces),
            "name": name,
            "dropped_empty": int((~keep).sum()),
        },
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Examples(abc.ABC):
    """Tokenized or decoded examples, ready to be put into batches in any order.

    Attributes:
        indices: The position of each example in the list of texts it was made from, int64.
        name: Where the texts come from, for messages.
        dropped_long: Number of texts left out because they exceeded a maximum length.
        dropped_empty: Number of texts left out because they had no token.
        truncated: Number of texts whose end was left out because they exceeded a maximum length.
        notes: Lines for users about what else was left out.

    Examples:
        >>> texts = ["bad", "decade"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"))
        >>> len(examples), examples.lengths.tolist()
        (2, [[4], [7]])
        >>> inputs, labels = examples.assemble([0, 1])
        >>> labels
        array([[5, 4, 7, 2, 0, 0, 0],
               [7, 8, 6, 4, 7, 8, 2]], dtype=int32)
    """

    indices: np.ndarray
    name: str = "texts"
    dropped_long: int = 0
    dropped_empty: int = 0
    truncated: int = 0
    notes: tuple[str, ...] = ()

    kind: ClassVar[str] = "text"
    """What one example is called."""

    read_units: ClassVar[tuple[str, str] | None] = None
    """What progress counts, of examples with a label for a whole row: rows and their parts."""

    _sides: ClassVar[tuple[str, ...]] = ("text",)
    """Names of the parts of the examples."""

    @property
    @abc.abstractmethod
    def signature(self) -> Signature:
        """Specifications of a batch, tensors of unknown sizes."""

    @property
    def sides(self) -> Mapping[str, Rows]:
        """The parts of the examples by name: one side, or a source and a target."""
        return {name: getattr(self, name) for name in self._sides}

    @abc.abstractmethod
    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        """Makes a batch of some rows, padded to a shape."""

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of all sides, end ids included, (rows, sides) int64."""
        return np.stack([rows.lengths for rows in self.sides.values()], axis=1)

    @property
    def text_lengths(self) -> Mapping[str, np.ndarray]:
        """Lengths of a row's text on each side by name, (rows,) int64."""
        return {name: rows.lengths for name, rows in self.sides.items()}

    @functools.cached_property
    def checksum(self) -> int:
        """A checksum of all sides, labels and their order."""
        digest = 0
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            has_rows = hasattr(value, "blocks")
            for part in itertools.chain(value.blocks(), [value.lengths]) if has_rows else [value]:
                if isinstance(part, np.ndarray):
                    digest = zlib.crc32(np.ascontiguousarray(part).data, digest)
        return digest

    @property
    def dropped(self) -> int:
        """Number of texts left out because they were too long or had no token."""
        return self.dropped_long + self.dropped_empty

    def of_epoch(self, epoch: int) -> "Examples":
        """Returns the examples of an epoch; they differ between epochs if parts are random."""
        del epoch
        return self

    def assemble(self, rows: np.ndarray, pad_to: tuple[int, ...] | None = None) -> Batch:
        """Puts rows into one padded batch.

        Args:
            rows: Indices of the rows, (count,) integers.
            pad_to: The shape `(rows, length of each side …)` to pad to; None for the number of
                rows and the lengths of the longest of them.

        Returns:
            `(inputs, labels)`, ids int32 and padded on the right with 0. Additional rows consist of
            padding.

        Raises:
            UserError: The batch does not fit into `pad_to`.
        """
        rows = np.asarray(rows, np.int64)
        longest = (side.lengths_of(rows).max(initial=0) for side in self.sides.values())
        fitting = tuple(int(size) for size in (len(rows), *longest))
        shape = fitting if pad_to is None else tuple(int(size) for size in pad_to)
        if any(size < needed for size, needed in zip(shape, fitting, strict=True)):
            names = ", ".join(f"{name} length" for name in self.sides)
            raise UserError(
                f"`pad_to` must hold the batch, as (rows, {names}) at least {fitting}. "
                f"Received: pad_to={shape}."
            )
        return self._batch(rows, shape)


def shifted(labels: np.ndarray, first_ids: np.ndarray | Sequence[int]) -> np.ndarray:
    """Returns a decoder's inputs: the labels shifted right by one, without end ids.

    Args:
        labels: int32 (rows, length), padded with 0.
        first_ids: The first id of each row; rows after them are padding.
    """
    inputs = np.zeros_like(labels)
    # The end id would be at a position that is padding in the labels.
    inputs[:, 1:] = np.where(labels[:, 1:] == 0, 0, labels[:, :-1])
    inputs[: len(first_ids), :1] = np.reshape(first_ids, (-1, 1))
    return inputs
