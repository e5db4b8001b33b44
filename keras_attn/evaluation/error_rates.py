"""Error rates of symbol sequences against alternative references.

Symbols are separated by ASCII whitespace, whose amount never matters.
"""

import re
from collections.abc import Hashable, Sequence

from keras_attn.validation import require

_SYMBOL = re.compile(r"[^ \t\n\r\f\v]+")


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Returns the smallest number of insertions, deletions and substitutions between two sequences.

    Reference: Levenshtein 1966; Wagner and Fischer 1974.

    Examples:
        >>> edit_distance("kitten", "sitting")
        3
    """
    first, second = _without_common_ends(first, second)
    # row[j]: distance between the items of `first` read so far and the first j of `second`.
    row = list(range(len(second) + 1))
    for i, item in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            cost = diagonal if item == other else 1 + min(diagonal, row[j], row[j - 1])
            diagonal, row[j] = row[j], cost
    return row[-1]


def word_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Returns the percentage of items that equal none of their references.

    An item is a whole string (such as one word of a pronunciation dictionary), compared symbol by
    symbol.

    Args:
        hypotheses: One string an item.
        references: For each item, one or more strings that are right.

    Returns:
        A percentage from 0 to 100, lower is better.

    Raises:
        UserError: No items, unequal numbers of items, or an item without references.

    Examples:
        >>> word_error_rate(["K AE T", "D AO G"], [["K AE T"], ["D AA G"]])
        50.0
    """
    check_items(hypotheses, references)
    wrong = sum(
        all(_symbols(hypothesis) != _symbols(reference) for reference in alternatives)
        for hypothesis, alternatives in zip(hypotheses, references, strict=True)
    )
    return 100.0 * wrong / len(hypotheses)


def phoneme_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Returns the edit errors against the nearest references, as a percentage of their symbols.

    For each item the reference with the fewest edit errors counts; of equally near references the
    shortest, so that the rate does not depend on their order and is never too low. The rate is the
    sum of the errors over the sum of the symbols of the references that count (it can pass 100).

    Args:
        hypotheses: One string of symbols an item.
        references: For each item, one or more strings of symbols that are right.

    Returns:
        A percentage, lower is better.

    Raises:
        UserError: No items, unequal numbers of items, an item without references, or no symbol
            in any reference that counts.

    Examples:
        >>> phoneme_error_rate(["K AE T"], [["K AA T", "K AE T S"]])
        33.33...
    """
    check_items(hypotheses, references)
    errors = symbols = 0
    for hypothesis, alternatives in zip(hypotheses, references, strict=True):
        found = _symbols(hypothesis)
        candidates = [_symbols(reference) for reference in alternatives]
        nearest = min((edit_distance(found, right), len(right)) for right in candidates)
        errors += nearest[0]
        symbols += nearest[1]
    require(symbols > 0, "The references must hold at least one symbol.", symbols=symbols)
    return 100.0 * errors / symbols


def check_items(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raises a UserError unless there are items and each has references."""
    for name, value in (("hypotheses", hypotheses), ("references", references)):
        require(not isinstance(value, str), f"`{name}` must be a list.", **{name: value})
    require(
        len(hypotheses) == len(references),
        "`hypotheses` and `references` must have equal lengths.",
        hypotheses=len(hypotheses),
        references=len(references),
    )
    require(len(hypotheses) > 0, "`hypotheses` must not be empty.", items=0)
    for position, (hypothesis, alternatives) in enumerate(zip(hypotheses, references, strict=True)):
        require(
            isinstance(hypothesis, str),
            f"`hypotheses[{position}]` must be a string.",
            hypothesis=hypothesis,
        )
        require(
            not isinstance(alternatives, str)
            and len(alternatives) > 0
            and all(isinstance(reference, str) for reference in alternatives),
            f"`references[{position}]` must be a list of one or more strings.",
            references=alternatives,
        )


def _symbols(text: str) -> list[str]:
    return _SYMBOL.findall(text)


def _without_common_ends(
    first: Sequence[Hashable], second: Sequence[Hashable]
) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    shorter = min(len(first), len(second))
    start = 0
    while start < shorter and first[start] == second[start]:
        start += 1
    end = 0
    while end < shorter - start and first[-1 - end] == second[-1 - end]:
        end += 1
    return first[start : len(first) - end], second[start : len(second) - end]
