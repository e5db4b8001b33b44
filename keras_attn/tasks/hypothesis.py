"""What a task predicts for one text."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Hypothesis(NamedTuple):
    """A generated text.

    Attributes:
        text: The text.
        score: What hypotheses are ranked by: the log-probability divided by the length penalty.
        log_probability: Natural logarithm of the model's probability of the text, its end token
            included.
    """

    text: str
    score: float
    log_probability: float


def best_text(hypotheses: list[Hypothesis]) -> str:
    """Gives the best hypothesis' text, "" where the model gave none any probability."""
    return hypotheses[0].text if hypotheses else ""


def perplexity_of(scores: list[tuple[float, int]]) -> float:
    """Computes the perplexity for each token.

    Args:
        scores: For each text its log-probability and its number of tokens.

    Returns:
        The perplexity; infinity where it passes what a float holds, 1 for no texts.
    """
    tokens = max(sum(count for _, count in scores), 1)
    nll = -sum(log_probability for log_probability, _ in scores) / tokens
    return math.exp(nll) if nll < 700 else math.inf


#: Names of a graph's outputs that `found_hypotheses` takes.
COLUMNS = ("text", "score", "log_probability")


def found_hypotheses(texts, scores, log_probabilities) -> list[Hypothesis]:
    """Puts one source's generated texts into words, without the places that stayed empty.

    Args:
        texts: UTF-8 bytes (n_best,), the best first.
        scores: Floats (n_best,), minus infinity where there is no hypothesis.
        log_probabilities: Floats (n_best,).

    Returns:
        The hypotheses there are.
    """
    return [
        Hypothesis(text.decode(errors="replace"), float(score), float(log_probability))
        for text, score, log_probability in zip(texts, scores, log_probabilities, strict=True)
        if score > -float("inf")
    ]


def hypotheses_in_batches(
    batches: list[list[int]],
    generate: Callable[[list[int]], Sequence[np.ndarray]],
    progress: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """Generates batch by batch.

    Args:
        batches: For each batch the positions of its texts.
        generate: Gives a batch's texts, scores and log-probabilities, each (batch, n_best).
        progress: Called with the number of texts done after each batch.

    Returns:
        For each text its hypotheses.
    """
    results: list[list[Hypothesis]] = [[] for positions in batches for _ in positions]
    for positions in batches:
        for position, row in zip(positions, zip(*generate(positions), strict=True), strict=True):
            results[position] = found_hypotheses(*row)
        if progress:
            progress(len(positions))
    return results


def length_sorted_batches(lengths: list[int], budget: int) -> list[list[int]]:
    """Puts items of similar lengths together.

    Args:
        lengths: Length of each item.
        budget: Most items times longest length in a batch; a longer item stands alone.

    Returns:
        For each batch the positions of its items.
    """
    batches, batch = [], []
    for position in sorted(range(len(lengths)), key=lambda item: lengths[item]):
        if batch and (len(batch) + 1) * max(lengths[position], 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(position)
    return [*batches, batch] if batch else batches
