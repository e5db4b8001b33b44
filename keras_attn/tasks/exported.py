"""An exported sequence-to-sequence task, used like the task itself."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

# Registers the ops that a SavedModel with tokenizers needs.
import tensorflow_text  # noqa: F401

from keras_attn.model_versions import latest_version
from keras_attn.tasks.hypothesis import (
    Hypothesis,
    best_text,
    found_hypotheses,
    length_sorted_batches,
    perplexity_of,
)
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.validation import UserError, require, require_positive


class ExportedSeq2Seq:
    """Runs a SavedModel that `keras_attn.export` wrote from a `Seq2SeqTask`.

    Args:
        folder: A version folder (it holds `saved_model.pb`), or a model folder, of which the
            highest version is taken.

    Raises:
        UserError: The folder holds no SavedModel, a damaged one, or one of something else.
    """

    def __init__(self, folder: str | Path):
        self.folder = latest_version(folder)
        try:
            self._model = tf.saved_model.load(str(self.folder))
        except (OSError, ValueError, tf.errors.OpError) as error:
            first_line = str(error).strip().splitlines()[0]
            raise UserError(f"{self.folder} is a damaged SavedModel: {first_line}") from error
        missing = {"serving_default", "n_best", "score"} - set(self._model.signatures)
        require(
            not missing,
            "The SavedModel must be an exported sequence-to-sequence task.",
            folder=str(self.folder),
            missing_signatures=sorted(missing),
        )

    def predict(self, texts: Sequence[str], beams: int | None = None) -> list[str]:
        """Generates a text for each text (see `Seq2SeqTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1, beams)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text (see `Seq2SeqTask.predict_n_best`).

        Raises:
            UserError: `beams` is given, for an exported model's are fixed; a text is too long; or
                `n_best` exceeds what was exported.
        """
        require_positive(n_best=n_best)
        texts = check_texts("texts", texts)
        require(beams is None, "The beams of an exported model cannot be changed.", beams=beams)
        signature = self._model.signatures["serving_default" if n_best == 1 else "n_best"]
        results: list[list[Hypothesis]] = [[] for _ in texts]
        for positions in length_sorted_batches([len(text) + 1 for text in texts], budget=4096):
            outputs = self._run(signature, text=[texts[position] for position in positions])
            columns = [outputs[name] for name in ("text", "score", "log_probability")]
            if n_best == 1:
                columns = [column[:, None] for column in columns]
            require(
                n_best <= columns[0].shape[1],
                "`n_best` must not exceed what was exported.",
                n_best=n_best,
                exported=columns[0].shape[1],
            )
            for position, row in zip(positions, zip(*columns, strict=True), strict=True):
                results[position] = found_hypotheses(*row)[:n_best]
            if progress:
                progress(len(positions))
        return results

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Log-probability of each target (see `Seq2SeqTask.score`)."""
        return [log_probability for log_probability, _ in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Perplexity of the targets for each token, end tokens included."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        results: list[tuple[float, int]] = [(0.0, 0)] * len(sources)
        for positions in length_sorted_batches([len(text) + 1 for text in sources], budget=4096):
            outputs = self._run(
                self._model.signatures["score"],
                text=[sources[position] for position in positions],
                target=[targets[position] for position in positions],
            )
            rows = zip(outputs["log_probability"], outputs["length"], strict=True)
            for position, (log_probability, length) in zip(positions, rows, strict=True):
                results[position] = (float(log_probability), int(length))
        return results

    def _run(self, signature, **texts: list[str]) -> dict[str, np.ndarray]:
        try:
            outputs = signature(**{name: tf.constant(values) for name, values in texts.items()})
        except tf.errors.InvalidArgumentError as error:
            # An assertion's message and values come in brackets.
            found = re.search(r"assertion failed: \[(.*?)\] \[(.*?)\]", str(error))
            line = " ".join(found.groups()) + " tokens." if found else str(error).splitlines()[0]
            raise UserError(line) from error
        return {name: value.numpy() for name, value in outputs.items()}
