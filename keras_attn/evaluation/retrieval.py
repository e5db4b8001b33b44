"""How well vectors find what belongs to them."""

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
    """Ranks the nearest partner of each query among what does not belong to it.

    Args:
        queries: Vectors, floating (queries, features).
        candidates: Vectors, floating (candidates, features).
        partners: For each query the rows of `candidates` that belong to it, at least one.
        ignored: For each query the rows that are neither right nor wrong, such as the query itself.

    Returns:
        int64 (queries,): 1 where a partner has the greatest cosine, else 1 more for each candidate
        that does not belong to the query and has at least the best partner's: a model that gives
        all texts one vector finds nothing.

    Raises:
        UserError: There is no query, or one without a partner.
    """
    require(len(queries) > 0, "There must be something to look for.", queries=len(queries))
    require(
        len(partners) == len(queries) and all(map(len, partners)),
        "Every query must have at least one partner.",
        queries=len(queries),
        partners=sum(1 for rows in partners if len(rows)),
    )
    queries, candidates = _unit(queries), _unit(candidates)
    ranks = np.zeros(len(queries), np.int64)
    for begin in range(0, len(queries), _ROWS):
        cosines = queries[begin : begin + _ROWS] @ candidates.T
        for row, found in enumerate(cosines, begin):
            best = found[list(partners[row])].max()
            found[list(partners[row])] = -np.inf
            if ignored is not None:
                found[list(ignored[row])] = -np.inf
            ranks[row] = 1 + np.count_nonzero(found >= best)
    return ranks


RETRIEVAL: Mapping[str, Callable[[np.ndarray], float]] = {
    "mrr": lambda ranks: 100.0 * float(np.mean(1.0 / ranks)),
    "recall_at_1": lambda ranks: 100.0 * float(np.mean(ranks <= 1)),
    "recall_at_10": lambda ranks: 100.0 * float(np.mean(ranks <= 10)),
}
"""From ranks to numbers from 0 to 100, the higher the better: the mean reciprocal rank, and how
many queries have a partner first, or among the first ten."""


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
