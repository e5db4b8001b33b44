"""Labeled texts as token ids, for a classifier."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_attn.data.examples.base import IDS, Batch, Examples, Signature, kept_rows
from keras_attn.data.files import Pairs
from keras_attn.data.stored.token_rows import TokenRows, pair_rows
from keras_attn.tokenizers import Tokenizer, shared_lengths
from keras_attn.validation import UserError, require


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledExamples(Examples):
    """Tokenized texts with their class numbers.

    A batch is `({"token_ids": (rows, length)}, labels (rows,))`: of a text `x` the ids
    `x + [end]` or `[start] + x + [end]`, of two texts `x + [end] + y + [end]` or `[start] + x +
    [end] + y + [end]`, and its class counted from 1; 0 where a row is padding.
    Several labels or numbers a text are labels (rows, columns); numbers are NaN at padding. With
    `segments` there are also "segment_ids" (rows, length).

    Attributes:
        text: The texts, the end id after each.
        classes: The class of each, int32 (rows,), counted from 1; or several labels, int32 (rows,
            labels), 2 for those that a text has and 1 for others; or numbers, float32 (rows,
            numbers).
        segments: The end id after which segment 1 begins, or `None` for a model without segments.

    Examples:
        >>> pairs = Pairs(["cab", "bad"], ["noun", "adjective"])
        >>> examples = LabelledExamples.from_pairs(
        ...     pairs, CharacterTokenizer("abcd"), labels=["adjective", "noun"]
        ... )
        >>> inputs, labels = examples.assemble([0, 1])
        >>> inputs["token_ids"]
        array([[6, 4, 5, 2],
               [5, 4, 7, 2]], dtype=int32)
        >>> labels
        array([2, 1], dtype=int32)
    """

    text: TokenRows
    classes: np.ndarray
    segments: int | None = None

    read_units = ("texts", "tokens")

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int | None = None,
        with_start: bool = False,
        long_texts: str = "cut",
    ) -> "LabelledExamples":
        """Tokenizes texts.

        Args:
            pairs: The texts as sources, their labels as targets.
            tokenizer: Tokenizer of the texts.
            labels: All labels, in the order of their numbers.
            max_length: Longest sequence, its start and end ids included; `None` for no limit.
            with_start: Whether each text begins with the start id.
            long_texts: Whether longer texts are truncated ("cut"), left out ("drop") or an "error".

        Returns:
            The texts that have a token; those that are left out or truncated are counted.

        Raises:
            UserError: `max_length` is not a positive integer, a label is not in `labels`, a text is
                too long, or none is left.
        """
        classes = class_numbers(pairs, labels, cls.kind)
        return cls.from_targets(pairs, tokenizer, classes, max_length, with_start, long_texts)

    @classmethod
    def from_targets(
        cls,
        pairs: Pairs,
        tokenizer: Tokenizer,
        classes: np.ndarray,
        max_length: int | None = None,
        with_start: bool = False,
        long_texts: str = "cut",
        ends_between: int = 1,
        segments: bool = False,
    ) -> "LabelledExamples":
        """Tokenizes texts whose labels are numbers already (see `from_pairs`).

        Args:
            pairs: The texts as sources.
            tokenizer: Tokenizer of the texts.
            classes: The attribute `classes`, for all texts.
            max_length: Longest sequence, its start and end ids included; `None` for no limit.
            with_start: Whether each text begins with the start id.
            long_texts: Whether longer texts are truncated ("cut"), left out ("drop") or an "error".
            ends_between: Number of end ids between two texts, 1 or 2.
            segments: Whether a batch has the segments of two texts.
        """
        if pairs.of_two:
            text, first = pair_rows(pairs.sources, tokenizer)
        else:
            text = TokenRows.bare(pairs.sources, tokenizer)
        frame = 1 + with_start + ends_between * pairs.of_two
        keep, fields = kept_rows(
            text.lengths == 0,
            pairs.name,
            long_texts=long_texts,
            max_length=(text.lengths + frame, max_length),
        )
        text = text.select(keep)
        if max_length is not None:
            require(
                max_length > frame + pairs.of_two,
                "`max_length` must leave room for a token.",
                max_length=max_length,
            )
        if pairs.of_two:
            ends = (tokenizer.end_id, ends_between)
            text = _joined(text, first[keep], max_length, frame, *ends)
        elif max_length is not None:
            text = text.truncated(max_length - frame)
        text = text.with_last(tokenizer.end_id)
        if with_start:
            text = text.with_first(tokenizer.start_id)
        end = tokenizer.end_id if segments else None
        return cls(text=text, classes=classes[keep], segments=end, **fields)

    @property
    def signature(self) -> Signature:
        """Specifications of a batch."""
        inputs = {"token_ids": IDS} | ({} if self.segments is None else {"segment_ids": IDS})
        return inputs, tf.TensorSpec([None, *self.classes.shape[1:]], self.classes.dtype)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        padding = np.nan if self.classes.dtype.kind == "f" else 0
        labels = np.full((shape[0], *self.classes.shape[1:]), padding, self.classes.dtype)
        labels[: len(rows)] = self.classes[rows]
        return with_segments(self.text.padded(rows, shape), self.segments), labels


def with_segments(ids: np.ndarray, end: int | None) -> dict[str, np.ndarray]:
    """The inputs of a model for ids.

    Args:
        ids: int32 (rows, length), 0 at padding.
        end: The end id after which segment 1 begins, or `None` for a model without segments.
    """
    if end is None:
        return {"token_ids": ids}
    is_end = ids == end
    before = np.cumsum(is_end, axis=1) - is_end
    return {"token_ids": ids, "segment_ids": ((before > 0) & (ids != 0)).astype(np.int32)}


def _joined(
    text: TokenRows, first: np.ndarray, max_length: int | None, frame: int, end: int, times: int
) -> TokenRows:
    """Both texts of pairs, each with its part of the room, and end ids between them."""
    lengths = first, text.lengths - first
    if max_length is not None:
        lengths = tuple(kept.numpy() for kept in shared_lengths(*lengths, max_length - frame))
    return text.halved(first, np.stack(lengths, axis=1)).joined_in_twos(end, times)


def class_numbers(pairs: Pairs, labels: Sequence[str], kind: str) -> np.ndarray:
    """Finds the number of each target among the labels, counted from 1.

    Args:
        pairs: The labels as targets.
        labels: All labels, in the order of their numbers.
        kind: Name of a source in error messages.

    Returns:
        int32 (pairs,).

    Raises:
        UserError: A target is not in `labels`.
    """
    return label_numbers(([label] for label in pairs.targets), labels, kind, pairs.name)


def label_numbers(
    rows: Iterable[Sequence[str]],
    labels: Sequence[str],
    kind: str,
    name: str,
    others: bool = False,
    untagged: str | None = None,
) -> np.ndarray:
    """Finds the numbers of all labels of some inputs, counted from 1.

    Args:
        rows: The labels of each input.
        labels: All labels, in the order of their numbers.
        kind: Name of an input in error messages.
        name: Where the inputs come from, for an error.
        others: Whether other labels than `labels` are allowed; their number is 0.
        untagged: A further label whose number is 0.

    Returns:
        int32, those of all inputs one after the other.

    Raises:
        UserError: There is another label and `others` is false.
    """
    number = {label: place for place, label in enumerate(labels, 1)}

    def numbers() -> Iterator[int]:
        for row, found in enumerate(rows, 1):
            for label in found:
                if label not in number and label != untagged and not others:
                    raise UserError(
                        f"{kind.capitalize()} {row:,} of {name} has a label that does not occur in "
                        f"the training data. Received: {label!r}; the labels are "
                        f"{', '.join(labels[:20])}."
                    )
                yield number.get(label, 0)

    return np.fromiter(numbers(), np.int32)


def label_rows(rows: Sequence[Sequence[str]], labels: Sequence[str]) -> np.ndarray:
    """Marks the labels of texts among all labels; others are left out.

    Args:
        rows: The labels of each text.
        labels: All labels, in the order of their numbers.

    Returns:
        int32 (texts, labels): 2 for a label that a text has, 1 for one that it has not.
    """
    number = {label: place for place, label in enumerate(labels)}
    marks = np.ones((len(rows), len(labels)), np.int32)
    for row, found in enumerate(rows):
        marks[row, [number[label] for label in found if label in number]] = 2
    return marks
