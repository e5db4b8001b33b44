"""Measures scores of passages by their relevances."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_attn.data.ranked_passages import RankedPassages
from keras_attn.evaluation.ranking import RANKING, ranked_relevances, ranking_metric
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.validation import require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.exported.rank import ExportedRank
    from keras_attn.tasks.rank import RankTask

OTHERS = 19
"""Passages of other queries beside each relevant one where no relevances are given."""


def measure_rankings(
    task: "RankTask | ExportedRank",
    passages: RankedPassages,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Scores passages and compares their order with their relevances.

    Args:
        task: A task that ranks, or its export.
        passages: Queries and passages; without relevances the passages of each query are ranked
            among 19 of other queries, always the same ones.
        metrics: Names in `keras_attn.evaluation.RANKING`.
        progress: Called with the number of passages done after each batch.

    Returns:
        Each metric's value by its name, from 0 to 100, over the queries that have a relevant
        passage; and "items", the number of these.

    Raises:
        UserError: A metric is unknown, or no query has a relevant passage.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=1)
        >>> task = RankTask(model, CharacterTokenizer("abc"))
        >>> passages = RankedPassages(["ab", "ab"], ["ba", "cc"], relevances=[1.0, 0.0])
        >>> measure_rankings(task, passages, ["mrr_at_10", "recall_at_5"])
        {'items': 1, 'mrr_at_10': ..., 'recall_at_5': 100.0}
    """
    passages = passages.with_others(OTHERS)
    return ranking_scores(passages, scores_of(task, passages, progress), metrics)


def scores_of(
    task: "RankTask | ExportedRank",
    passages: RankedPassages,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Computes the score of each passage, (rows,)."""
    rows = zip(passages.sources, passages.targets, strict=True)
    return task.scores([f"{query}{BETWEEN}{passage}" for query, passage in rows], progress)


def ranking_scores(
    passages: RankedPassages, scores: np.ndarray, metrics: Sequence[str]
) -> dict[str, float]:
    """Compares scores with relevances; see `measure_rankings`."""
    for name in metrics:
        require_one_of("metric", name, RANKING)
    relevances = np.array(passages.relevances, float)
    ranked = [
        ranked_relevances(relevances[rows], scores[rows]) for rows in passages.groups.values()
    ]
    values = {name: ranking_metric(name, ranked) for name in metrics}
    return {"items": sum(bool((one > 0).any()) for one in ranked)} | values
