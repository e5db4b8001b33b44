"""Splits and groups of pairs by their source."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_attn.data.files import Pairs
from keras_attn.data.stored.column import StoredColumn
from keras_attn.validation import UserError, is_integer, require, require_positive


def hold_out(
    pairs: Pairs, count: int, seed: int, stratify: bool | Sequence[str] = False
) -> tuple[Pairs, Pairs]:
    """Holds out all rows of some sources, so that no source is in both parts.

    Args:
        pairs: The pairs to divide.
        count: How many different sources to hold out.
        seed: Determines the choice, together with the order in which sources first appear.
        stratify: Whether each target, a label, is as frequent in both parts, as far as whole
            numbers allow; one source of each label remains. A list has a label for each pair.

    Returns:
        The remaining pairs and the held-out ones, each in the order of `pairs`.

    Raises:
        UserError: `count` is not positive or leaves no source, or `seed` is negative.

    Examples:
        >>> pairs = Pairs(["read", "cat", "read"], ["R IY D", "K AE T", "R EH D"])
        >>> rest, held_out = hold_out(pairs, count=1, seed=1)
        >>> rest.sources, held_out.sources
        (['cat'], ['read', 'read'])
    """
    require_positive(count=count)
    require(is_integer(seed) and seed >= 0, "`seed` must be a whole number.", seed=seed)
    (source,) = numbered(pairs.sources).T
    there = int(source.max(initial=-1)) + 1
    if count >= there:
        raise UserError(
            f"At most {there - 1:,} of the {there:,} different sources of {pairs.name} can be held "
            f"out. Received: count={count}."
        )
    generator = np.random.default_rng(seed)
    if stratify:
        _, first = np.unique(source, return_index=True)
        labels = pairs.targets if stratify is True else stratify
        (label,) = numbered(numbered(labels)[first, 0].tolist()).T
        chosen = _held_of_each_label(label, count, generator, pairs.name)
    else:
        chosen = generator.choice(there, count, replace=False)
    is_held = np.zeros(there, bool)
    is_held[chosen] = True
    held = is_held[source]
    return _select(pairs, ~held, "rest", pairs.skipped), _select(pairs, held, "held out")


def numbered(*columns: Sequence[Any]) -> np.ndarray:
    """Numbers values by their first appearance, row by row; equal ones have the same number.

    Args:
        *columns: Values of equal counts.

    Returns:
        int64 (rows, columns), from 0.

    Examples:
        >>> numbered(["b", "a", "b"]).tolist()
        [[0], [1], [0]]
    """
    stored = [column for column in columns if isinstance(column, StoredColumn)]
    if len(stored) < len(columns):
        number: dict[Any, int] = {}
        rows = zip(*columns, strict=True)
        values = (number.setdefault(value, len(number)) for row in rows for value in row)
        return np.fromiter(values, np.int64).reshape(-1, len(columns))
    keys = np.stack([column.keys for column in stored], axis=1).reshape(-1)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[which].reshape(-1, len(columns))


def count_different(values: Sequence[Any]) -> int:
    """Counts different values."""
    if isinstance(values, StoredColumn):
        return int((np.diff(np.sort(values.keys)) != 0).sum()) + bool(len(values))
    return len(set(values))


def contradicted_rows(values: Sequence[Any], targets: Sequence[Any]) -> np.ndarray:
    """Finds different values that have several different targets, such as texts with two labels.

    Returns:
        The first row of each, int64 (values,).

    Examples:
        >>> contradicted_rows(["good film", "bad", "good film"], ["pos", "neg", "neg"])
        array([0])
    """
    return rows_with_several(numbered(values)[:, 0], numbered(targets)[:, 0])


def rows_with_several(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Finds different numbers beside which there are several different ones of others.

    Args:
        numbers: Integers (rows,).
        others: Integers (rows,).

    Returns:
        The first row of each, in their order, int64 (numbers,).
    """
    pairs = np.unique(np.stack([numbers, others], axis=1), axis=0)
    found, counts = np.unique(pairs[:, 0], return_counts=True)
    different, first = np.unique(numbers, return_index=True)
    return np.sort(first[np.isin(different, found[counts > 1])])


def taken(values: Sequence[Any], rows: np.ndarray) -> Sequence[Any]:
    """Some values, by indices (count,); stored ones are not copied."""
    if isinstance(values, StoredColumn):
        return values.take(rows)
    return [values[row] for row in rows.tolist()]


def _held_of_each_label(
    labels: np.ndarray, count: int, generator: np.random.Generator, name: str
) -> np.ndarray:
    """Sources to hold out, of each label in proportion to its sources.

    Args:
        labels: Number of the label of each source, (sources,), by first appearance.
        count: How many to hold out.
        generator: Chooses them.
        name: Where they come from, for an error.
    """
    sizes = np.bincount(labels)
    exact = count * sizes / sizes.sum()
    counts = np.minimum(np.floor(exact).astype(int), sizes - 1)
    # The largest remainders get one more, as long as one source of their label remains.
    for index in np.argsort(counts - exact, kind="stable"):
        if counts.sum() < count and counts[index] < sizes[index] - 1:
            counts[index] += 1
    require(
        bool(counts.any()),
        f"{name}: no label has two different texts, so none can be held out to choose the best "
        "model. Is the label another column (--columns)? To predict numbers, set --task "
        "regression.",
        labels=len(sizes),
    )
    of_label = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    return np.concatenate(
        [
            sources[generator.choice(len(sources), some, replace=False)]
            for sources, some in zip(of_label, counts, strict=True)
        ]
    )


def group_references(pairs: Pairs) -> tuple[list[str], list[list[str]]]:
    """Gathers the targets of equal sources as alternative references.

    Args:
        pairs: The pairs to group.

    Returns:
        The different sources in the order of their first row, and for each the list of its
        different targets.

    Examples:
        >>> pairs = Pairs(["read", "cat", "read"], ["R IY D", "K AE T", "R EH D"])
        >>> group_references(pairs)
        (['read', 'cat'], [['R IY D', 'R EH D'], ['K AE T']])
    """
    references: dict[str, dict[str, None]] = {}
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        references.setdefault(source, {})[target] = None
    return list(references), [list(targets) for targets in references.values()]


def split_by_hash(content: bytes, test: int, validation: int) -> str:
    """Finds the part of a data set that an example belongs to, by its content alone.

    Args:
        content: The example; the first eight bytes of its SHA-256, as a big-endian number modulo
            100, determine the part.
        test: Number of the lowest remainders, for the test part.
        validation: Number of the next remainders, for the validation part.

    Returns:
        "train", "validation" or "test".
    """
    bucket = int.from_bytes(hashlib.sha256(content).digest()[:8], "big") % 100
    if bucket < test:
        return "test"
    return "validation" if bucket < test + validation else "train"


def parts_of(rows: Iterable[tuple[str, Any, str]], name: str) -> dict[str, Pairs]:
    """Divides a data set.

    Args:
        rows: The part, the source and the target of each pair.
        name: Name of the data set.

    Returns:
        The parts "train", "validation" and "test".
    """
    names = ("train", "validation", "test")
    columns: dict[str, tuple[list, list]] = {part: ([], []) for part in names}
    for part, source, target in rows:
        columns[part][0].append(source)
        columns[part][1].append(target)
    return {part: Pairs(*columns[part], f"{name}/{part}") for part in names}


def _select(pairs: Pairs, keep: np.ndarray, part: str, skipped: int = 0) -> Pairs:
    rows = np.flatnonzero(keep)
    sources, targets = (taken(values, rows) for values in (pairs.sources, pairs.targets))
    name = f"{pairs.name} ({part})"
    return Pairs(sources, targets, name, skipped, (), pairs.untagged, pairs.of_two)
