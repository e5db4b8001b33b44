"""Splits and groups of pairs by their source."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_attn.data.files import Pairs
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
    sources = list(dict.fromkeys(pairs.sources))
    if count >= len(sources):
        raise UserError(
            f"At most {len(sources) - 1:,} of the {len(sources):,} different sources of "
            f"{pairs.name} can be held out. Received: count={count}."
        )
    generator = np.random.default_rng(seed)
    if stratify:
        labels = pairs.targets if stratify is True else stratify
        held = _held_of_each_label(pairs, labels, count, generator)
    else:
        chosen = generator.choice(len(sources), count, replace=False)
        held = {sources[index] for index in chosen}
    return (
        _select(pairs, [source not in held for source in pairs.sources], "rest"),
        _select(pairs, [source in held for source in pairs.sources], "held out"),
    )


def _held_of_each_label(
    pairs: Pairs, labels: Sequence[str], count: int, generator: np.random.Generator
) -> set[Any]:
    """Sources to hold out, of each label in proportion to its sources."""
    label_of = dict(zip(reversed(pairs.sources), reversed(labels), strict=True))
    of_label: dict[str, list[Any]] = {}
    for source in dict.fromkeys(pairs.sources):
        of_label.setdefault(label_of[source], []).append(source)
    sizes = np.array([len(sources) for sources in of_label.values()])
    exact = count * sizes / sizes.sum()
    counts = np.minimum(np.floor(exact).astype(int), sizes - 1)
    # The largest remainders get one more, as long as one source of their label remains.
    for index in np.argsort(counts - exact, kind="stable"):
        if counts.sum() < count and counts[index] < sizes[index] - 1:
            counts[index] += 1
    require(
        bool(counts.any()),
        f"No source of {pairs.name} can be held out: every label has a single one.",
        labels=len(sizes),
    )
    held: set[Any] = set()
    for sources, some in zip(of_label.values(), counts, strict=True):
        held |= {sources[index] for index in generator.choice(len(sources), some, replace=False)}
    return held


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
    parts: dict[str, Pairs] = {part: Pairs([], [], f"{name}/{part}") for part in names}
    for part, source, target in rows:
        parts[part].sources.append(source)
        parts[part].targets.append(target)
    return parts


def _select(pairs: Pairs, keep: list[bool], part: str) -> Pairs:
    rows = [index for index, kept in enumerate(keep) if kept]
    return Pairs(
        [pairs.sources[row] for row in rows],
        [pairs.targets[row] for row in rows],
        f"{pairs.name} ({part})",
    )
