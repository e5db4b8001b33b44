"""Exported tasks that predict labels, filled texts or tags."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_attn.tasks.exported.base import Exported, check_exported, run_signature
from keras_attn.tasks.hypothesis import (
    Hypothesis,
    best_text,
    hypotheses_in_batches,
    length_sorted_batches,
)
from keras_attn.tasks.image_classification import ImageClassificationTask, image_batches
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.token_classification import check_one_answer
from keras_attn.validation import require, require_positive


class ExportedClassification(Exported):
    """An exported `ClassificationTask`."""

    kind = "classification"
    needs = frozenset({"n_best"})
    _served_input = "text"
    _column = "label"

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predicts the label of each text (see `ClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the best labels of each text (see `ClassificationTask.predict_n_best`).

        Raises:
            UserError: `beams` is given, a text is too long, or `n_best` exceeds that of the export.
        """
        require_positive(n_best=n_best)
        require(beams is None, "A classifier has no beam search.", beams=beams)
        texts, batches = self._batches(texts)

        def columns(positions):
            inputs = {self._served_input: [texts[position] for position in positions]}
            outputs = run_signature(self._model.signatures["n_best"], **inputs)
            check_exported(n_best, outputs[self._column])
            with np.errstate(divide="ignore"):
                scores = np.log(outputs["probability"][:, :n_best])
            return outputs[self._column][:, :n_best], scores, scores

        return hypotheses_in_batches(batches, columns, progress)

    def _batches(self, texts: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
        """Returns the checked inputs, and for each batch the positions of its inputs."""
        texts = check_texts("texts", texts)
        return texts, length_sorted_batches([len(text) + 1 for text in texts], budget=4096)


class ExportedImageClassification(ExportedClassification):
    """An exported `ImageClassificationTask`."""

    kind = ImageClassificationTask.kind
    _served_input = ImageClassificationTask.served_input

    def _batches(self, texts: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
        return image_batches(texts)


class ExportedMaskedLM(ExportedClassification):
    """An exported `MaskedLMTask`."""

    kind = "masked_lm"
    _column = "text"


class ExportedTokenClassification(Exported):
    """An exported `TokenClassificationTask`."""

    kind = "token_classification"
    needs = frozenset({"token_ids"})

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predicts the tags of each text (see `TokenClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int = 1,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the tags of each text (see `TokenClassificationTask.predict_n_best`).

        Raises:
            UserError: A text is too long, or `n_best` or `beams` is invalid.
        """
        check_one_answer(n_best, beams)
        texts = check_texts("texts", texts)
        signature = self._model.signatures["serving_default"]

        def columns(positions):
            outputs = run_signature(signature, text=[texts[position] for position in positions])
            score = outputs["log_probability"][:, None]
            return outputs["tags"][:, None], score, score

        batches = length_sorted_batches([len(text) + 2 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)
