"""Measures vectors by the partners that they find, or by scores."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_attn.data import Pairs, ScoredPairs, group_references
from keras_attn.evaluation import CORRELATIONS, RETRIEVAL
from keras_attn.evaluation.retrieval import ranks_and_rivals
from keras_attn.validation import require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.embedding import EmbeddingTask
    from keras_attn.tasks.exported.labelling import ExportedEmbedding


def measure_vectors(
    task: "EmbeddingTask | ExportedEmbedding",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Measures how well embeddings retrieve the partner of each text, or agree with scores.

    For each distinct source, all distinct targets are ranked by their similarity. A target equal to
    the source is ignored unless it is one of the source's own targets.

    Args:
        task: An embedding task or its export.
        pairs: Pairs of texts that belong together, or pairs with similarity scores.
        metrics: Names in `keras_attn.evaluation.RETRIEVAL` for pairs, in `CORRELATIONS` for pairs
            with scores.
        progress: Called with the number of texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of distinct sources, or of pairs with
        scores.

    Raises:
        UserError: A metric is unknown for such pairs.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
        >>> pairs = Pairs(["a cat sat", "a dog ran"], ["the cat sits", "the dog runs"])
        >>> measure_vectors(task, pairs, ["mrr", "recall_at_1"])
        {'items': 2, 'mrr': ..., 'recall_at_1': ...}
    """
    return vector_scores(pairs, vectors_of(task, pairs, progress), metrics)


class Vectors(NamedTuple):
    """The vectors of pairs.

    Attributes:
        sources: Those of the sources; of each different one unless the pairs have scores.
        targets: Those of the targets.
    """

    sources: np.ndarray
    targets: np.ndarray

    def cosines(self) -> np.ndarray:
        """The cosine of each source and its target, (pairs,)."""
        lengths = np.linalg.norm(self.sources, axis=1) * np.linalg.norm(self.targets, axis=1)
        return np.sum(self.sources * self.targets, axis=1) / np.maximum(lengths, 1e-12)


def vectors_of(
    task: "EmbeddingTask | ExportedEmbedding",
    pairs: Pairs,
    progress: Callable[[int], None] | None = None,
) -> Vectors:
    """Embeds both sides of pairs."""
    sides = [pairs.sources, pairs.targets]
    if not isinstance(pairs, ScoredPairs):
        sides = [list(dict.fromkeys(texts)) for texts in sides]
    return Vectors(*(task.predict(texts, progress) for texts in sides))


def vector_scores(pairs: Pairs, vectors: Vectors, metrics: Sequence[str]) -> dict[str, float]:
    """Measures vectors; see `measure_vectors`."""
    known = CORRELATIONS if isinstance(pairs, ScoredPairs) else RETRIEVAL
    for name in metrics:
        require_one_of("metric", name, known)
    if isinstance(pairs, ScoredPairs):
        cosines = vectors.cosines()
        values = {name: CORRELATIONS[name](cosines, pairs.scores) for name in metrics}
        return {"items": len(pairs)} | values
    ranks, _ = partners_found(pairs, vectors)
    return {"items": len(ranks)} | {name: RETRIEVAL[name](ranks) for name in metrics}


def partners_found(pairs: Pairs, vectors: Vectors) -> tuple[np.ndarray, list[str]]:
    """Compares the partners of the different sources with all other targets.

    Returns:
        For each source the rank of its nearest partner, int64 (sources,), and the nearest target
        that is no partner.
    """
    sources, references = group_references(pairs)
    targets = list(dict.fromkeys(pairs.targets))
    number = {text: row for row, text in enumerate(targets)}
    partners = [[number[text] for text in texts] for texts in references]
    ignored = [[number[text]] if text in number else [] for text in sources]
    ranks, rivals = ranks_and_rivals(vectors.sources, vectors.targets, partners, ignored)
    return ranks, [targets[rival] for rival in rivals]
