"""Hypothesis, the result of a prediction, and batches of predictions."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple


class Hypothesis(NamedTuple):
    """A predicted text or label.

    Attributes:
        text: The text.
        score: The ranking score: the log-probability divided by the length penalty.
        log_probability: Natural logarithm of the text's probability, including its end token.

    Examples:
        >>> task = Task.load("saved_models/g2p_en")
        >>> [[best, second]] = task.predict_n_best(["read"], n_best=2)
        >>> best.text, round(best.score, 2), round(best.log_probability, 2)
        ('R IY D', -0.68, -0.86)
    """

    text: str
    score: float
    log_probability: float


class LabelSet(NamedTuple):
    """The labels of a text.

    Attributes:
        labels: The predicted labels, the most probable one first.
        probabilities: The probability of every label, the most probable one first.

    Examples:
        >>> found = LabelSet(("toxic",), {"toxic": 0.93, "insult": 0.25})
        >>> list(found.probabilities)
        ['toxic', 'insult']
    """

    labels: tuple[str, ...]
    probabilities: dict[str, float]


def best_text(hypotheses: list[Hypothesis]) -> str:
    """Returns the best hypothesis' text, or "" if there is no hypothesis."""
    return hypotheses[0].text if hypotheses else ""


def perplexity_of(scores: list[tuple[float, int]]) -> float:
    """Computes the per-token perplexity.

    Args:
        scores: For each text its log-probability and its number of tokens.

    Returns:
        The perplexity; infinity if it overflows a float, 1 for no texts.
    """
    tokens = max(sum(count for _, count in scores), 1)
    nll = -sum(log_probability for log_probability, _ in scores) / tokens
    return math.exp(nll) if nll < 700 else math.inf


#: Names of a graph's outputs that `found_hypotheses` takes.
COLUMNS = ("text", "score", "log_probability")

#: Names of the outputs of a graph that scores texts.
SCORE_COLUMNS = ("log_probability", "length")


def found_hypotheses(texts, scores, log_probabilities) -> list[Hypothesis]:
    """Converts one input's outputs to hypotheses, leaving out empty places.

    Args:
        texts: UTF-8 bytes (n_best,), the best first.
        scores: Floats (n_best,), minus infinity where there is no hypothesis.
        log_probabilities: Floats (n_best,).

    Returns:
        The hypotheses.
    """
    return [
        Hypothesis(text.decode(errors="replace"), float(score), float(log_probability))
        for text, score, log_probability in zip(texts, scores, log_probabilities, strict=True)
        if score > -float("inf")
    ]


def in_batches(
    batches: list[list[int]],
    predict: Callable[..., Sequence[Iterable]],
    *inputs: Sequence,
    progress: Callable[[int], None] | None = None,
) -> list[Any]:
    """Predicts batch by batch.

    Args:
        batches: For each batch the positions of its inputs.
        predict: Takes a batch of each of `inputs`, and returns the columns of the answers: arrays
            with a row for each input.
        *inputs: Sequences with a value for each input, such as the texts.
        progress: Called with the number of inputs done after each batch.

    Returns:
        For each input a tuple with its row of each column.
    """
    results: list[Any] = [None for positions in batches for _ in positions]
    for positions in batches:
        columns = predict(*([values[position] for position in positions] for values in inputs))
        for position, row in zip(positions, zip(*columns, strict=True), strict=True):
            results[position] = row
        if progress:
            progress(len(positions))
    return results


def length_sorted_batches(lengths: list[int], budget: int) -> list[list[int]]:
    """Groups items of similar lengths into batches.

    Args:
        lengths: Length of each item.
        budget: Maximum of a batch's number of items times its longest length; a longer item is a
            batch of its own.

    Returns:
        For each batch the positions of its items.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda item: lengths[item]):
        if batch and (len(batch) + 1) * max(lengths[position], 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(position)
    return [*batches, batch] if batch else batches
