"""Exports of tasks that generate texts."""

from collections.abc import Callable, Sequence
from typing import Any

from keras_attn.generation import SamplingRules, check_seed
from keras_attn.tasks.exported.base import Exported, check_exported, run_signature
from keras_attn.tasks.hypothesis import (
    COLUMNS,
    Hypothesis,
    best_text,
    hypotheses_in_batches,
    length_sorted_batches,
    perplexity_of,
)
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.validation import UserError, require, require_one_of, require_positive


class ExportedSeq2Seq(Exported):
    """Runs a SavedModel that `keras_attn.export` wrote from a task that generates."""

    kind = "seq2seq"
    needs = frozenset({"n_best", "score"})

    def predict(self, texts: Sequence[str], beams: int | None = None) -> list[str]:
        """Generates a text for each text (see `Seq2SeqTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1, beams)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text (see `Seq2SeqTask.predict_n_best`).

        Raises:
            UserError: `beams` or `prefixes` are given, for an exported model's search is fixed; a
                text is too long; or `n_best` exceeds what was exported.
        """
        require_positive(n_best=n_best)
        require(prefixes is None, "An exported model takes no prefixes.", prefixes=prefixes)
        texts = check_texts("texts", texts)
        require(beams is None, "The beams of an exported model cannot be changed.", beams=beams)
        signature = self._model.signatures["serving_default" if n_best == 1 else "n_best"]

        def columns(positions):
            outputs = run_signature(signature, text=[texts[position] for position in positions])
            columns = [outputs[name] for name in COLUMNS]
            if n_best == 1:
                columns = [column[:, None] for column in columns]
            check_exported(n_best, columns[0])
            return [column[:, :n_best] for column in columns]

        batches = length_sorted_batches([len(text) + 1 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)

    def sample(
        self,
        texts: Sequence[str],
        samples: int = 1,
        seed: int = 0,
        first_number: int = 0,
        progress: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Draws a text for each text at random (see `CausalLMTask.sample`).

        The same seed gives the texts that the task gives. `settings` are `temperature`, `top_k`
        and `top_p`; what is not given is 1, no limit and 1.

        Raises:
            UserError: It is no export of a language model, `samples` is not 1, there are other
                settings, or a text is too long.
        """
        require(
            "sample" in self._model.signatures,
            "Only the export of a language model draws texts: use the run or the task folder.",
            folder=str(self.folder),
        )
        require(samples == 1, "A SavedModel draws one text at a time.", samples=samples)
        names = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        for name in settings:
            require_one_of("setting", name, names)
        values = names | {name: value for name, value in settings.items() if value is not None}
        SamplingRules(**values)
        check_seed(seed)
        texts = check_texts("texts", texts)

        def columns(positions):
            outputs = run_signature(
                self._model.signatures["sample"],
                text=[texts[position] for position in positions],
                seed=[seed + ((position + first_number) << 32) for position in positions],
                **{name: [value] * len(positions) for name, value in values.items()},
            )
            return [outputs[name][:, None] for name in COLUMNS]

        batches = length_sorted_batches([len(text) + 1 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)

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
            outputs = run_signature(
                self._model.signatures["score"],
                text=[sources[position] for position in positions],
                target=[targets[position] for position in positions],
            )
            rows = zip(outputs["log_probability"], outputs["length"], strict=True)
            for position, (log_probability, length) in zip(positions, rows, strict=True):
                results[position] = (float(log_probability), int(length))
        return results


class ExportedCausalLM(ExportedSeq2Seq):
    """Runs a SavedModel that `keras_attn.export` wrote from a `CausalLMTask`."""

    kind = "lm"

    def text_perplexity(self, texts: Sequence[str]) -> float:
        """Perplexity of whole texts for each token, end tokens included.

        Raises:
            UserError: A text is longer than the model's maximum.
        """
        texts = check_texts("texts", texts)
        try:
            return self.perplexity([""] * len(texts), texts)
        except UserError as error:
            hint = "The run or the task folder measures longer texts, in pieces."
            raise UserError(f"{error} {hint}") from error
