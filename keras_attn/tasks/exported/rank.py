"""Exported tasks that rank passages."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_attn.tasks.exported.base import Exported
from keras_attn.tasks.rank import RankedPassage, ranked_by, ranked_of
from keras_attn.tasks.text_inputs import require_pair
from keras_attn.tasks.texts import check_texts
from keras_attn.tokenizers.text_pairs import BETWEEN


class ExportedRank(Exported):
    """An exported `RankTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=1)
        >>> task = RankTask(model, CharacterTokenizer("abc"))
        >>> folder = task.export("exported/demo")
        >>> found = open_exported("exported/demo").rank("cab", ["abba", "c"])
        >>> [one.place for one in found] == [one.place for one in task.rank("cab", ["abba", "c"])]
        True
    """

    kind = "rank"
    needs = frozenset({"serving_default", "rank"})

    def predict(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[list[RankedPassage]]:
        """Ranks the passages of queries (see `RankTask.predict`)."""
        return ranked_by(self.scores, inputs, progress)

    def rank(self, query: str, passages: Sequence[str]) -> list[RankedPassage]:
        """Ranks passages for a query (see `RankTask.rank`)."""
        return ranked_of(self.scores, query, passages)

    def scores(
        self, pairs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Computes the scores of pairs (see `RankTask.scores`)."""
        pairs = check_texts("pairs", pairs)
        for pair in pairs:
            require_pair(pair)
        texts = [pair.split(BETWEEN) for pair in pairs]
        # Passages first: batches are of similar lengths of these.
        columns = {
            name: [text[place] for text in texts] for place, name in ((1, "passage"), (0, "query"))
        }
        rows = self._in_batches(
            "serving_default", lambda outputs: [outputs["score"]], progress, **columns
        )
        return np.array(rows, np.float32).reshape(len(pairs))
