"""Exported embedding tasks."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_attn.tasks.exported.base import Exported, run_signature
from keras_attn.tasks.hypothesis import length_sorted_batches
from keras_attn.tasks.texts import check_texts


class ExportedEmbedding(Exported):
    """An exported `EmbeddingTask`."""

    kind = "embedding"
    needs = frozenset({"token_ids"})

    def predict(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Embeds texts (see `EmbeddingTask.predict`)."""
        signature = self._model.signatures["serving_default"]
        texts = check_texts("texts", texts)
        features = signature.structured_outputs["embedding"].shape[1]
        results = np.zeros((len(texts), features), np.float32)
        for positions in length_sorted_batches([len(text) + 2 for text in texts], budget=4096):
            outputs = run_signature(signature, text=[texts[position] for position in positions])
            results[positions] = outputs["embedding"]
            if progress:
                progress(len(positions))
        return results
