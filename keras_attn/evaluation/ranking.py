"""Metrics of ranked passages: reciprocal rank, gain, recall and accuracy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_attn.validation import require


def ranked_relevances(
    relevances: np.ndarray | Sequence[float], scores: np.ndarray | Sequence[float]
) -> np.ndarray:
    """Puts the relevances of a query's passages into the order of their scores.

    Args:
        relevances: How relevant each passage is, 0 for not at all.
        scores: What a model gave each.

    Returns:
        float64 (passages,), that of the highest score first. Of equal scores the lowest relevance
        is first, so that a model that gives all passages the same score finds nothing.

    Examples:
        >>> ranked_relevances([0, 2, 1], [0.3, 0.9, 0.3]).tolist()
        [2.0, 0.0, 1.0]
    """
    values = np.asarray(relevances, float)
    return values[np.lexsort((values, -np.asarray(scores, float)))]


def reciprocal_rank(ranked: np.ndarray, most: int = 10) -> float:
    """Returns 1 / rank of the first relevant passage, 0 if none is among the first ones.

    Args:
        ranked: Relevances in the order of the scores.
        most: How many are looked at.

    Examples:
        >>> reciprocal_rank(np.array([0, 1, 1]))
        0.5
    """
    found = np.flatnonzero(ranked[:most] > 0)
    return 1.0 / (1 + int(found[0])) if len(found) else 0.0


def normalized_gain(ranked: np.ndarray, most: int = 10) -> float:
    """Returns the discounted cumulative gain as a part of the greatest possible one.

    The gain of a passage is its relevance, divided by the binary logarithm of 1 + its rank.

    Args:
        ranked: Relevances in the order of the scores, not all 0.
        most: How many are looked at.

    Examples:
        >>> round(normalized_gain(np.array([0, 1])), 4)  # 1 / log2(3)
        0.6309

    Reference:
        Järvelin and Kekäläinen, 2002, "Cumulated Gain-Based Evaluation of IR Techniques".
    """
    discounts = 1.0 / np.log2(np.arange(2, min(most, len(ranked)) + 2))
    best = np.sort(ranked)[::-1][: len(discounts)]
    return float(ranked[: len(discounts)] @ discounts / (best @ discounts))


def _recall(ranked: np.ndarray, most: int) -> float:
    return np.count_nonzero(ranked[:most] > 0) / np.count_nonzero(ranked > 0)


_OF_QUERY: Mapping[str, Callable[[np.ndarray], float]] = {
    "mrr_at_10": reciprocal_rank,
    "ndcg_at_10": normalized_gain,
    "recall_at_1": lambda ranked: _recall(ranked, 1),
    "recall_at_5": lambda ranked: _recall(ranked, 5),
    "recall_at_10": lambda ranked: _recall(ranked, 10),
    "accuracy": lambda ranked: float(ranked[0] == ranked.max()),
}
RANKING = tuple(_OF_QUERY)
"""Metrics of ranked passages, from 0 to 100, higher is better: means over queries that have a
relevant passage. The accuracy is the percentage whose first passage is a most relevant one."""


def ranking_metric(name: str, queries: Sequence[np.ndarray]) -> float:
    """Computes a metric.

    Args:
        name: One of `RANKING`.
        queries: For each query the relevances of its passages in the order of their scores; a query
            without a relevant passage is left out.

    Raises:
        UserError: No query has a relevant passage.

    Examples:
        >>> ranking_metric("mrr_at_10", [np.array([0, 1]), np.array([2, 0]), np.array([0, 0])])
        75.0
    """
    queries = [ranked for ranked in queries if (ranked > 0).any()]
    require(bool(queries), "At least one query must have a relevant passage.", queries=0)
    return 100.0 * float(np.mean([_OF_QUERY[name](ranked) for ranked in queries]))
