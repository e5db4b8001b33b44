"""Batches of rows of similar lengths, limited by their number of tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keras_attn.data.examples.base import Examples
from keras_attn.data.shapes import choose_shapes
from keras_attn.validation import UserError, is_integer, require, require_positive

# Lengths up to 50 are distinguished exactly, 100 from 104, 1,000 from 1,040.
_GROWTH = 0.04


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The batches of one epoch, a sequence of arrays of row indices.

    Attributes:
        batches: The row indices of each batch, int64.
        shapes: What each batch is padded to, (batches, 1 + sides) int64 as (rows, length of each
            side).
        static: Whether the shapes are those of few buckets instead of the batches' own.

    Examples:
        >>> texts = ["bad", "cab", "decade", "beaded"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"))
        >>> plan = plan_epoch(examples, batch_tokens=16, seed=None)
        >>> [rows.tolist() for rows in plan]
        [[0, 1], [2, 3]]
        >>> plan.shapes.tolist()  # rows and tokens of each batch, end and padding included
        [[2, 4], [2, 7]]
    """

    batches: list[np.ndarray]
    shapes: np.ndarray
    static: bool = False

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.batches[index]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.batches)


def plan_epoch(
    examples: Examples,
    batch_tokens: int,
    seed: int | None,
    epoch: int = 0,
    static_shapes: bool = False,
) -> EpochPlan:
    """Divides all rows into batches of similar lengths.

    Every row is in exactly one batch. A batch of `rows` rows keeps `rows * length <= batch_tokens`
    on every side, padding included. Rows are sorted by length of the last side (the target), then
    of the other in alternating direction, so that neighbors differ little on both; rows of about
    equal lengths are shuffled, and so are the batches.

    Args:
        examples: The tokenized examples.
        batch_tokens: Most tokens in a batch on each side, padding included; for images, most
            patches.
        seed: Determines the order together with `epoch`, the same on every machine and in every
            process. None for no shuffling: rows and batches are sorted, for evaluation.
        epoch: The number of the epoch, from 0.
        static_shapes: Whether batches are padded to a few shapes that are the same in every epoch
            (for XLA, which compiles each shape separately), instead of to their longest rows.

    Returns:
        The plan. With `static_shapes` the shapes have more rows than the batches where a bucket's
        rows ran out.

    Raises:
        UserError: An argument is not a positive integer (`seed` and `epoch`: not negative), or a
            single example has more than `batch_tokens` tokens.

    Examples:
        >>> texts = ["bad", "cab", "decade", "beaded"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"))
        >>> for rows in plan_epoch(examples, batch_tokens=16, seed=1, epoch=0):
        ...     inputs, labels = examples.assemble(rows)
        ...     print(labels.shape)
        (2, 7)
        (2, 4)
    """
    require_positive(batch_tokens=batch_tokens)
    require(seed is None or _is_natural(seed), "`seed` must be None or a whole number.", seed=seed)
    require(_is_natural(epoch), "`epoch` must be a whole number.", epoch=epoch)
    _require_fitting(examples, batch_tokens)
    shuffle = None if seed is None else np.random.default_rng([seed, epoch])
    make = _plan_static if static_shapes else _plan_tight
    batches, shapes = make(examples.lengths, batch_tokens, shuffle)
    if shuffle is not None:
        order = shuffle.permutation(len(batches))
        batches, shapes = [batches[place] for place in order], shapes[order]
    return EpochPlan(batches, shapes, static_shapes)


def padding_share(examples: Examples, plan: EpochPlan) -> dict[str, float]:
    """Measures the fraction of padding in planned batches.

    Args:
        examples: The tokenized examples.
        plan: The batches of an epoch.

    Returns:
        The fraction of tokens that are padding for each side by name, and for all as `"total"`.

    Examples:
        >>> texts = ["a", "decade", "bad", "beaded"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"))
        >>> padding_share(examples, plan_epoch(examples, batch_tokens=28, seed=1))
        {'text': 0.28..., 'total': 0.28...}
    """
    planned = (plan.shapes[:, :1] * plan.shapes[:, 1:]).sum(axis=0)
    lengths = examples.lengths
    real = lengths[np.concatenate(plan.batches)].sum(axis=0)
    shares = dict(zip(examples.sides, (1 - real / planned).tolist(), strict=True))
    return shares | {"total": float(1 - real.sum() / planned.sum())}


def _is_natural(value: object) -> bool:
    return is_integer(value) and value >= 0


def _require_fitting(examples: Examples, batch_tokens: int) -> None:
    lengths = examples.lengths
    longest = lengths.max(axis=1)
    if len(longest) and longest.max() > batch_tokens:
        row = int(longest.argmax())
        counts = zip(examples.sides, lengths[row], strict=True)
        found = " and ".join(f"{count:,} {side}" for side, count in counts)
        raise UserError(
            f"`batch_tokens` must hold the longest {examples.kind}: {examples.kind} "
            f"{examples.indices[row] + 1:,} of {examples.name} has {found} tokens, end included. "
            f"Set training.batch_tokens={longest.max()} or more, or a smaller length in `data`. "
            f"Received: batch_tokens={batch_tokens}."
        )


def _plan_tight(
    lengths: np.ndarray, budget: int, shuffle: np.random.Generator | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Batches cut from one sorted order, each padded to its longest rows."""
    order = _sorted_rows(lengths, shuffle)
    lengths = lengths[order]
    longest = lengths.max(axis=1)
    batches, shapes, begin = [], [], 0
    while begin < len(order):
        window = longest[begin : begin + budget // longest[begin]]
        tokens = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        end = begin + int(np.searchsorted(tokens, budget, side="right"))
        batches.append(_mixed(order[begin:end], shuffle))
        shapes.append((end - begin, *lengths[begin:end].max(axis=0)))
        begin = end
    return batches, np.array(shapes, np.int64).reshape(-1, 1 + lengths.shape[1])


def _plan_static(
    lengths: np.ndarray, budget: int, shuffle: np.random.Generator | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Batches of few shapes, the same for all epochs; each row in the bucket chosen for it."""
    bucket_of_row, bucket_lengths = choose_shapes(lengths, budget)
    batches, shapes = [], []
    for bucket, longest in enumerate(bucket_lengths):
        rows = _mixed(np.flatnonzero(bucket_of_row == bucket), shuffle)
        size = budget // max(longest)
        for begin in range(0, len(rows), size):
            batches.append(rows[begin : begin + size])
            shapes.append((size, *longest))
    return batches, np.array(shapes, np.int64).reshape(-1, 1 + lengths.shape[1])


def _sorted_rows(lengths: np.ndarray, shuffle: np.random.Generator | None) -> np.ndarray:
    """Rows by length of the last side; those of one such length by the other, up, the next down."""
    if shuffle is None:
        return _serpentine(lengths, np.arange(len(lengths)))
    # Where many lengths are rare, shuffling equal ones would give the same batches in all epochs:
    # the borders of what counts as equal move, and so do the ends of the batches.
    scale = 1 + _GROWTH * shuffle.random()
    upwards, first_up = shuffle.integers(2, size=2)
    coarse = np.stack([_coarse(side, scale) for side in lengths.T], axis=1)
    coarse[:, -1] += first_up
    order = _serpentine(coarse, shuffle.permutation(len(lengths)))
    return order if upwards else order[::-1]


def _serpentine(lengths: np.ndarray, ties: np.ndarray) -> np.ndarray:
    direction = np.where(lengths[:, -1:] % 2 == 0, 1, -1)
    order = np.empty(len(ties), np.int64)
    order[ties] = np.arange(len(ties))
    for key in (*(lengths[:, :-1] * direction).T, lengths[:, -1]):
        key = key - key.min(initial=0)
        if key.max(initial=0) < 1 << 16:
            key = key.astype(np.uint16)  # sorted by digits, in a fraction of the time
        order = order[np.argsort(key[order], kind="stable")]
    return order


def _coarse(lengths: np.ndarray, scale: float) -> np.ndarray:
    """Numbers of the growing intervals that scaled lengths fall into."""
    lengths = (lengths * scale).astype(np.int64)
    borders, last = [], 0
    while last < lengths.max(initial=0):
        last += max(1, int(last * _GROWTH))
        borders.append(last)
    return np.searchsorted(borders, lengths)


def _mixed(rows: np.ndarray, shuffle: np.random.Generator | None) -> np.ndarray:
    return rows if shuffle is None else shuffle.permutation(rows)
