"""Accuracy of tags, and precision, recall and F1 of spans."""

from collections.abc import Callable, Mapping, Sequence

from keras_attn.validation import require

Tags = Sequence[Sequence[str]]
"""The tags of each text."""

OUTSIDE = "O"


def tagged_spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Finds the spans that the tags of a text mark.

    In IOB2, `B-X` begins a span of the kind `X`, `I-X` continues it and `O` is outside of spans. As
    in CoNLL's own program, an `I-X` without a span of its kind before it begins one. Any other tag
    is a span of one word, so that every word counts for part-of-speech tags.

    Args:
        tags: The tags of a text's words.

    Returns:
        For each span the position of its first word, the position after its last, and its kind.

    Reference: Tjong Kim Sang and Buchholz 2000, https://aclanthology.org/W00-0726.

    Examples:
        >>> sorted(tagged_spans(["B-PER", "I-PER", "O", "B-LOC"]))
        [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    spans = set()
    begin, kind = None, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, name = tag.partition("-")
        in_span = bool(name) and prefix in ("B", "I")
        if begin is not None and not (in_span and prefix == "I" and name == kind):
            spans.add((begin, place, kind))
            begin = None
        if in_span and begin is None:
            begin, kind = place, name
        elif not in_span and tag != OUTSIDE:
            spans.add((place, place + 1, tag))
    return spans


def tag_accuracy(hypotheses: Tags, references: Tags) -> float:
    """Returns the percentage of words with the right tag.

    Args:
        hypotheses: The predicted tags of each text.
        references: The right tags of each text.

    Raises:
        UserError: There is no word, or the numbers of texts or words differ.

    Examples:
        >>> tag_accuracy([["B-PER", "O"]], [["B-PER", "B-LOC"]])
        50.0
    """
    _check(hypotheses, references)
    pairs = [
        found == right
        for hypothesis, reference in zip(hypotheses, references, strict=True)
        for found, right in zip(hypothesis, reference, strict=True)
    ]
    return 100.0 * sum(pairs) / len(pairs)


def span_precision(hypotheses: Tags, references: Tags) -> float:
    """Returns the percentage of predicted spans that are right; 0 for none (see `tag_accuracy`).

    Examples:
        >>> span_precision([["B-PER", "O"]], [["B-PER", "B-LOC"]])
        100.0
    """
    correct, found, _ = _counts(hypotheses, references)
    return 100.0 * correct / max(found, 1)


def span_recall(hypotheses: Tags, references: Tags) -> float:
    """Returns the percentage of right spans that were predicted (see `tag_accuracy`).

    Examples:
        >>> span_recall([["B-PER", "O"]], [["B-PER", "B-LOC"]])
        50.0
    """
    correct, _, right = _counts(hypotheses, references)
    return 100.0 * correct / max(right, 1)


def span_f1(hypotheses: Tags, references: Tags) -> float:
    """Returns the harmonic mean of precision and recall of all spans, as CoNLL counts them.

    A span is right if its first word, its last one and its kind are.

    Args:
        hypotheses: The predicted tags of each text.
        references: The right tags of each text.

    Returns:
        A percentage; 0 where nothing is right.

    Raises:
        UserError: There is no word, or the numbers of texts or words differ.

    Reference: Tjong Kim Sang and De Meulder 2003, https://aclanthology.org/W03-0419.

    Examples:
        >>> span_f1([["B-PER", "O"]], [["B-PER", "B-LOC"]])
        66.66...
    """
    correct, found, right = _counts(hypotheses, references)
    return 200.0 * correct / max(found + right, 1)


TAGGING: Mapping[str, Callable[[Tags, Tags], float]] = {
    "tag_accuracy": tag_accuracy,
    "span_f1": span_f1,
    "span_precision": span_precision,
    "span_recall": span_recall,
}
"""Metrics of predicted and right tags, from 0 to 100, higher is better."""


def _counts(hypotheses: Tags, references: Tags) -> tuple[int, int, int]:
    """Numbers of spans that are right, that were predicted, and that should have been."""
    _check(hypotheses, references)
    correct = found = right = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        predicted, expected = tagged_spans(hypothesis), tagged_spans(reference)
        correct += len(predicted & expected)
        found += len(predicted)
        right += len(expected)
    return correct, found, right


def _check(hypotheses: Tags, references: Tags) -> None:
    require(
        list(map(len, hypotheses)) == list(map(len, references)),
        "Every word must have one predicted and one right tag.",
        predicted=sum(map(len, hypotheses)),
        right=sum(map(len, references)),
    )
    require(any(map(len, references)), "`hypotheses` must not be empty.", words=0)
