"""Base class of runs on pairs, whose predictions are compared with the targets."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data import Pairs, group_references, read_pairs
from keras_attn.data.split import numbered, taken
from keras_attn.evaluation import edit_distance, evaluate_texts
from keras_attn.progress import progress_lines
from keras_attn.tasks import Hypothesis
from keras_attn.tasks.measuring.answers import best_answers
from keras_attn.tasks.measuring.generated import text_scores
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.named_sets import (
    SETS_OF_PAIRS,
    DataSets,
    check_settings_of_named,
    named_set,
)
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.run_texts import hold_out_pairs, reported
from keras_attn.training.task_runs.base import TaskRun
from keras_attn.validation import require

_SAMPLES = 8


class PairsRun(TaskRun):
    """Training on pairs of a source and the target to predict for it."""

    known_data: ClassVar[DataSets] = SETS_OF_PAIRS
    """Data sets whose parts are fixed."""

    hold_out = staticmethod(hold_out_pairs)
    columns = ("source", "target")

    def check(self, settings):
        super().check(settings)
        check_settings_of_named(self.known_data, settings)
        for name in settings.metrics:
            self.goal(name)

    def shown(self, source: Any) -> str:
        """A source as it is printed."""
        return source

    def known(self, paths, data):
        load = named_set(self.known_data, paths)
        return load(data) if load else {}

    def read_test(self, paths, data):
        known = self.known(paths, data)
        return known["test"] if known else self.read_files(paths, data)

    def read_files(self, paths: list[str], data: DataSettings) -> Pairs:
        """Reads tables, or a source and a target file."""
        options = {"columns": data.columns, "encoding": data.encoding, "roles": self.columns}
        options |= {"separator": data.label_separator, "cache": data.kept_in}
        return reported(read_pairs(paths, data.skip_bad_lines, self.mistake, **options))

    def check_test(self, settings, texts, task):
        super().check_test(settings, texts, task)
        if not self.roles or self.for_long_texts(settings) == "cut":
            return  # images have no tokens
        longest = max(self.source_lengths(task, list(texts.sources)))
        limit = self.longest_source(settings)
        require(
            longest <= limit,
            "`data.max_source_length` must leave room for every test text and its end.",
            longest=longest,
            max_source_length=limit,
        )

    def count_cut(self, texts, task):
        return task.count_truncated(list(texts.sources))

    def source_lengths(self, task: Any, sources: list[Any]) -> list[int]:
        """Numbers of the tokens of sources, those around them included."""
        tokenizer = task.tokenizers[self.roles[0]]
        lengths = tokenizer.tokenize(tf.constant(sources)).row_lengths() + self.source_frame(task)
        return lengths.numpy().tolist()

    def source_frame(self, task: Any) -> int:
        """Number of tokens that a task puts around a source."""
        return 1

    def longest_source(self, settings: Any) -> int:
        """Most tokens that a source may have when the task predicts."""
        return settings.data.max_source_length

    def answers(self, task, texts, beams=None, progress=None):
        return best_answers(task, texts.sources, beams, progress)

    def scores(self, texts, answers, metrics):
        return text_scores(texts, answers, metrics)

    def count(self, texts):
        return len(set(texts.sources))

    def validation_set(self, task, settings, texts):
        """Makes a validation set, whose sources are predicted if there are metrics."""
        examples = self.examples(settings, texts, task.tokenizers, task, held_out=True)
        if not settings.metrics:
            return ValidationSet(examples)
        # The accuracy of labels is known with their loss.
        metrics = [name for name in settings.metrics if name not in task.loss_values]
        first = partial(self.first, texts, examples)
        shown = partial(self.samples, task, first(_SAMPLES))
        if not metrics:
            return ValidationSet(examples, samples=shown)
        decoded = partial(self._decoded_metrics, task, metrics)
        most = settings.data.decode_limit if self.generates else None
        few, everything = first(most), first(None)
        whole = partial(decoded, everything)
        if len(few) == len(everything):
            return ValidationSet(examples, whole, samples=shown)
        return ValidationSet(examples, partial(decoded, few), whole, shown)

    def samples(self, task: Any, pairs: Pairs) -> list[tuple[str, str, str]]:
        """Predicts a few pairs, and returns source, reference and prediction of each."""
        return [one[:3] for one in self.judged(pairs, self.answers(task, pairs, self.beams))]

    def first(self, texts, examples, most):
        numbers = numbered(texts.sources)[:, 0]
        wanted = list(dict.fromkeys(numbers[examples.indices].tolist()))[:most]
        kept = np.flatnonzero(np.isin(numbers, wanted))
        columns = (taken(texts.sources, kept), taken(texts.targets, kept))
        return Pairs(*columns, texts.name, untagged=texts.untagged, of_two=texts.of_two)

    def judged(self, texts, answers):
        sources, references = group_references(texts)
        return [
            Judged(
                self.shown(source),
                # Alternative references in one line, as dictionaries have them.
                " / ".join(right),
                answers[source].text,
                self.error(right, answers[source]),
            )
            for source, right in zip(sources, references, strict=True)
        ]

    def baseline(self, texts, metrics, task=None):
        """Measures the sources themselves as answers."""
        sources, references = group_references(texts)
        return Baseline("the source itself", evaluate_texts(metrics, sources, references))

    def error(self, references: list[str], best: Hypothesis) -> float:
        """How wrong an answer is: edits for each word of the closest reference, 0 if correct."""
        return min(_edits(best.text, reference) for reference in references)

    def _decoded_metrics(self, task, metrics, pairs) -> dict[str, float]:
        done = progress_lines(self.count(pairs), "validation: predicting")
        values = self.measure(task, pairs, metrics, beams=self.beams, progress=done)
        return {name: values[name] for name in metrics}


def _edits(text: str, reference: str) -> float:
    """Edits for each word of a reference; for each character where both are one word."""
    found, expected = text.split(), reference.split()
    if max(len(found), len(expected)) == 1:
        found, expected = list(text), list(reference)
    return edit_distance(found, expected) / max(len(expected), 1)
