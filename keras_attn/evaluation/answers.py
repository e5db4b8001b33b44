"""Exact match and F1 of answers, by the rules of SQuAD."""

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
ANSWERS = ("exact_match", "f1")
"""Metrics of answers, from 0 to 100, higher is better."""


def normalized_answer(text: str) -> str:
    """Lower-cases an answer, and leaves out punctuation, articles and further spaces.

    Args:
        text: The answer.

    Examples:
        >>> normalized_answer("The  U.S. Army!")
        'us army'
    """
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def answer_exact_match(answer: str, references: Sequence[str]) -> float:
    """Returns 100 if an answer is one of the references, or none where there is none, else 0.

    Args:
        answer: The answer, "" for none.
        references: The right answers; empty if there is none.

    Examples:
        >>> answer_exact_match("the Army", ["army", "the U.S. Army"])
        100.0
    """
    right = [normalized_answer(text) for text in references or [""]]
    return 100.0 * (normalized_answer(answer) in right)


def answer_f1(answer: str, references: Sequence[str]) -> float:
    """Returns the F1 of the words of an answer, of the reference for which it is highest.

    Args:
        answer: The answer, "" for none.
        references: The right answers; empty if there is none.

    Examples:
        >>> answer_f1("U.S. Army", ["the army"])  # precision 1/2, recall 1
        66.66666666666667

    Reference:
        Rajpurkar et al., 2016, https://arxiv.org/abs/1606.05250, section 6.1.
    """
    return max(_f1(answer, reference) for reference in references or [""])


def _f1(answer: str, reference: str) -> float:
    found, right = normalized_answer(answer).split(), normalized_answer(reference).split()
    if not found or not right:
        return 100.0 * (found == right)
    common = sum((Counter(found) & Counter(right)).values())
    return 200.0 * common / (len(found) + len(right))
