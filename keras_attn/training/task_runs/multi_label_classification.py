"""Runs of tasks from text to any number of labels."""

from collections import Counter
from typing import ClassVar

import numpy as np

from keras_attn.data import Pairs
from keras_attn.data.examples.labelled import label_rows
from keras_attn.data.reading.lines import excerpt
from keras_attn.evaluation.label_sets import LABEL_SETS, LabelSetCounts, best_thresholds
from keras_attn.tasks import MultiLabelClassificationTask
from keras_attn.tasks.measuring.labels import label_set_scores, label_sets_of
from keras_attn.training.reporting.errors import Baseline, Judged, calibration
from keras_attn.training.run_texts import hold_out_pairs
from keras_attn.training.task_runs.classification import ClassificationRun
from keras_attn.training.task_runs.soft_targets import DECISIONS


def _wrong_labels(text: str, labels: tuple | str) -> str | None:
    if isinstance(labels, tuple):
        return None
    return (
        "expected labels as a list, or with what `data.label_separator` (--label-separator) names "
        f"between them, found {excerpt(labels)}"
    )


class MultiLabelClassificationRun(ClassificationRun):
    """Trains an encoder and a head on texts with any number of labels, tuples in the pairs."""

    task_class = MultiLabelClassificationTask
    mistake = staticmethod(_wrong_labels)
    has_several = True
    named_columns = ()
    known_data: ClassVar = {}
    known_metrics = tuple(LABEL_SETS)
    soft_targets = DECISIONS
    no_answer = ()
    items = "texts"

    def check(self, settings):
        super().check(settings)
        self.refuse_consistency(settings)

    def recognized(self, data):
        return self.name

    def default_metrics(self, data):
        return ["micro_f1", "macro_f1", "exact_match"]

    def hold_out(self, texts, data, seed):
        if not data.stratify:
            return hold_out_pairs(texts, data, seed)
        # By the rarest label of a text, so that rare ones are in both parts.
        counts = Counter(self.all_labels(texts))
        rarest = [min(labels, key=lambda one: counts[one], default="") for labels in texts.targets]
        return hold_out_pairs(texts, data, seed, stratify=rarest)

    def targets(self, texts, task, held_out):
        # A rare label may be in the held-out texts alone: it is never predicted.
        return label_rows(texts.targets, self.labels(texts, task))

    def balanced_weights(self, texts, labels):
        """Weights by which, for each label, texts with it count as much as those without it."""
        counts, total = Counter(self.all_labels(texts)), len(texts)
        pairs = [(total - counts[label], counts[label]) for label in labels]
        return [[total / (2 * max(count, 1)) for count in pair] for pair in pairs]

    def ask(self, teacher, inputs, beams):
        return list(map(tuple, teacher.predict(inputs)))

    def all_labels(self, texts):
        return [label for labels in texts.targets for label in labels]

    def described(self, texts):
        without = sum(not labels for labels in texts.targets)
        lines = super().described(texts)
        return [*lines, f"            {without:,} texts have no label"] if without else lines

    def check_test(self, settings, texts, task):
        if any(texts.targets):
            super().check_test(settings, texts, task)

    def answers(self, task, texts, beams=None, progress=None):
        return label_sets_of(task, texts, progress)

    def scores(self, texts, answers, metrics):
        return label_set_scores(texts, answers, metrics)

    def judged(self, texts, answers):
        """Judges texts by the sum of the differences of their wrong decisions.

        Each is the difference of a label's probability from 0 or 1.
        """
        judged = []
        for text, labels in zip(texts.sources, texts.targets, strict=True):
            found = answers[text]
            missed, wrong = set(labels) - set(found.labels), set(found.labels) - set(labels)
            error = sum(1 - found.probabilities.get(label, 0.0) for label in missed)
            error += sum(found.probabilities[label] for label in wrong)
            sides = (", ".join(sorted(some)) for some in (labels, found.labels))
            judged.append(Judged(text, *sides, error))
        return judged

    def baseline(self, texts, metrics, task=None):
        """Measures the most frequent labels together as the answer to everything."""
        (labels, _), *_ = Counter(tuple(sorted(labels)) for labels in texts.targets).most_common(1)
        counts = LabelSetCounts.of(texts.targets, [labels] * len(texts))
        values = {name: LABEL_SETS[name](counts) for name in metrics}
        return Baseline(f"{', '.join(labels) or 'no label'}, the most frequent ones", values)

    def charts(self, task, texts, answers):
        """The calibration of all decisions."""
        correct, probabilities = [], []
        for text, labels in zip(texts.sources, texts.targets, strict=True):
            for label, probability in answers[text].probabilities.items():
                correct.append(label in labels)
                probabilities.append(probability)
        return calibration(correct, np.array(probabilities))

    def choose_thresholds(self, task: MultiLabelClassificationTask, texts: Pairs) -> None:
        """Chooses the thresholds of a trained task on its validation texts."""
        different = dict(zip(texts.sources, texts.targets, strict=True))
        marks = label_rows(list(different.values()), task.labels) > 1
        task.thresholds = best_thresholds(task.probabilities(list(different)), marks)
