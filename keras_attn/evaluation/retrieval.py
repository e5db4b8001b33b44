"""Retrieval metrics: whether the nearest vectors are the right ones."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_attn.validation import require

_ROWS = 1024  # of the table of cosines at a time


def partner_ranks(
    queries: np.ndarray,
    candidates: np.ndarray,
    partners: Sequence[Sequence[int]],
    ignored: Sequence[Sequence[int]] | None = None,
) -> np.ndarray:
    """Ranks the nearest partner of each query among the other candidates.

    Args:
        queries: Vectors, floating (queries, features).
        candidates: Vectors, floating (candidates, features).
        partners: For each query the indices of its partners in `candidates`, at least one.
        ignored: For each query the indices to ignore, such as that of the query itself.

    Returns:
        int64 (queries,): 1 where a partner has the greatest cosine, plus 1 for each candidate that
        is not a partner and has at least the cosine of the best partner. So a model that gives all
        texts the same vector finds nothing.

    Raises:
        UserError: There is no query, or one without a partner.

    Examples:
        >>> queries = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> candidates = np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> partner_ranks(queries, candidates, partners=[[0], [1]]).tolist()
        [1, 1]
    """
    return ranks_and_rivals(queries, candidates, partners, ignored)[0]


def ranks_and_rivals(
    queries: np.ndarray,
    candidates: np.ndarray,
    partners: Sequence[Sequence[int]],
    ignored: Sequence[Sequence[int]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Ranks the nearest partners, and finds the nearest candidates that are none.

    The arguments are those of `partner_ranks`.

    Returns:
        The ranks, int64 (queries,), and the index of the nearest other candidate of each query.
    """
    require(len(queries) > 0, "`queries` must not be empty.", queries=len(queries))
    require(
        len(partners) == len(queries) and all(map(len, partners)),
        "Every query must have at least one partner.",
        queries=len(queries),
        partners=sum(1 for rows in partners if len(rows)),
    )
    queries, candidates = _unit(queries), _unit(candidates)
    ranks, rivals = np.zeros((2, len(queries)), np.int64)
    for begin in range(0, len(queries), _ROWS):
        cosines = queries[begin : begin + _ROWS] @ candidates.T
        for row, found in enumerate(cosines, begin):
            best = found[list(partners[row])].max()
            found[list(partners[row])] = -np.inf
            if ignored is not None:
                found[list(ignored[row])] = -np.inf
            ranks[row] = 1 + np.count_nonzero(found >= best)
            rivals[row] = found.argmax()
    return ranks, rivals


RETRIEVAL: Mapping[str, Callable[[np.ndarray], float]] = {
    "mrr": lambda ranks: 100.0 * float(np.mean(1.0 / ranks)),
    "recall_at_1": lambda ranks: 100.0 * float(np.mean(ranks <= 1)),
    "recall_at_10": lambda ranks: 100.0 * float(np.mean(ranks <= 10)),
}
"""Metrics of ranks, from 0 to 100, higher is better: the mean reciprocal rank, and the percentage
of queries with a partner at rank 1, or among the first ten."""


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
