"""Runs of tasks from text to label."""

import math
from collections import Counter
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data import LabelledExamples, Pairs
from keras_attn.data.examples.labelled import class_numbers
from keras_attn.data.files import has_label_lists
from keras_attn.data.overview import doubts
from keras_attn.data.reading.lines import excerpt
from keras_attn.data.reading.several import number_in
from keras_attn.data.split import contradicted_rows
from keras_attn.evaluation import LABELS, LabelCounts
from keras_attn.tasks import (
    ClassificationTask,
    LabelTask,
    MultiLabelClassificationTask,
    Task,
)
from keras_attn.tasks.measuring.labels import label_scores
from keras_attn.training.named_sets import named_set
from keras_attn.training.reporting.errors import Baseline, Judged, calibration, confusion
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import hold_out_pairs
from keras_attn.training.task_runs.heads import HeadRun
from keras_attn.training.task_runs.soft_targets import CLASSES
from keras_attn.validation import require

_SHOWN = 5
_DESCRIBED = 10
_MOST_NUMBERS = 20  # that may be labels, such as stars
_SEPARATORS = (",", ";", "|")


class ClassificationRun(HeadRun):
    """Trains an encoder and a head on texts with labels, the targets of the pairs."""

    task_class: ClassVar[type[Task]] = ClassificationTask
    columns = ("text", "label")
    named_columns = ("other",)
    has_labels = True
    known_metrics = tuple(LABELS)
    soft_targets = CLASSES

    def recognized(self, data):
        if named_set(self.known_data, data.train) is not None:
            return self.name
        several = data.label_separator is not None
        columns = data.columns
        if columns is not None:
            columns = {role: columns[role] for role in columns if role not in self.named_columns}
        several = several or has_label_lists(data.train, columns, data.encoding)
        return MultiLabelClassificationTask.kind if several else self.name

    def read_files(self, paths, data):
        pairs = super().read_files(paths, data)
        row = next((row for row, one in enumerate(pairs.targets) if isinstance(one, tuple)), None)
        require(
            row is None or self.has_several,
            f"{pairs.name}: each text must have one label; several are for the task "
            f"{MultiLabelClassificationTask.kind}.",
            label=pairs.targets[row or 0],
        )
        return pairs

    def hold_out(self, texts, data, seed):
        return hold_out_pairs(texts, data, seed, stratify=data.stratify)

    def default_metrics(self, data):
        return ["accuracy", "macro_f1", "weighted_f1"]

    def metrics_of(self, texts, data, chosen):
        return self.default_metrics(data)

    def scores(self, texts, answers, metrics):
        return label_scores(texts, answers, metrics)

    def head_of(self, texts, task):
        return (self.labels(texts, task),)

    def targets(self, texts, task, held_out):
        return class_numbers(texts, self.labels(texts, task), LabelledExamples.kind)

    def task(self, settings, texts, tokenizers, source_task):
        task = super().task(settings, texts, tokenizers, source_task)
        return self._with_weights(task, settings, texts)

    def student(self, settings, texts, tokenizers, teacher):
        student = super().student(settings, texts, tokenizers, teacher)
        return self._with_weights(student, settings, texts)

    def check_texts_of_student(self, texts, teacher):
        unknown = self._unknown(teacher, texts)
        require(
            not unknown,
            f"The teacher must know every label of {texts.name}.",
            labels=sorted(set(unknown))[:_SHOWN],
        )

    def check_teacher(self, task, teacher):
        super().check_teacher(task, teacher)
        require(
            set(teacher.labels) == set(task.labels),
            "Teacher and student must have the same labels.",
            teacher=sorted(teacher.labels)[:_SHOWN],
            student=sorted(task.labels)[:_SHOWN],
        )

    def teacher_outputs(self, task, teacher):
        columns = [teacher.labels.index(label) for label in task.labels]
        return lambda inputs, _: tf.gather(
            teacher.backbone(inputs, training=False), columns, axis=-1
        )

    def _with_weights(self, task: LabelTask, settings: RunSettings, texts: Pairs) -> LabelTask:
        """Sets the weights of labels."""
        if settings.training.class_weights:
            task.class_weights = self.balanced_weights(texts, task.labels)
        return task

    def balanced_weights(self, texts: Pairs, labels: list[str]) -> list:
        """Weights of labels by which all count alike, and an example counts 1 in the mean."""
        counts = Counter(self.all_labels(texts))
        total = sum(counts.values()) / sum(counts[label] > 0 for label in labels)
        return [total / max(counts[label], 1) for label in labels]

    def needs_new_head(self, source_task, texts):
        return super().needs_new_head(source_task, texts) or not (
            set(self.all_labels(texts)) <= set(source_task.labels)
        )

    def labels(self, texts: Pairs, task: LabelTask | None) -> list[str]:
        """The labels of a task, or else of training texts, in the order of their numbers."""
        return task.labels if task else sorted(set(self.all_labels(texts)))

    def all_labels(self, texts: Pairs) -> list[str]:
        """The labels of all texts, one after the other."""
        return texts.targets

    def check_test(self, settings, texts, task):
        super().check_test(settings, texts, task)
        unknown = self._unknown(task, texts)
        require(
            len(unknown) < len(self.all_labels(texts)),
            f"No label of {texts.name} occurs in the training data.",
            test_labels=sorted(set(unknown))[:_SHOWN],
            labels=task.labels[:_SHOWN],
        )

    def described(self, texts):
        counts = Counter(self.all_labels(texts)).most_common()
        shown = ", ".join(f"{label} {count:,}" for label, count in counts[:_DESCRIBED])
        more = f" and {len(counts) - _DESCRIBED:,} more" if len(counts) > _DESCRIBED else ""
        lines = [f"    labels: {len(counts):,}: {shown}{more}"]
        several = contradicted_rows(texts.sources, texts.targets)
        example = excerpt(str(texts.sources[int(several[0])])) if len(several) else ""
        found = doubts(dict(counts), len(several), example)
        lines += [f"   warning: {doubt}" for doubt in found]
        if self.task_class is ClassificationTask:
            lines += _hints([label for label, _ in counts])
        return lines

    def remarks(self, task, texts):
        if not isinstance(task, LabelTask):
            return []  # an exported one has no list of labels
        unknown = self._unknown(task, texts)
        if not unknown:
            return []
        names = list(dict.fromkeys(unknown))
        shown = ", ".join(map(repr, names[:_SHOWN])) + (" …" if len(names) > _SHOWN else "")
        return [
            f"{texts.name}: {len(unknown):,} of {len(self.all_labels(texts)):,} labels are unknown "
            f"to the model and count as wrong: {shown}"
        ]

    def _unknown(self, task: LabelTask, texts: Pairs) -> list[str]:
        """The labels of texts that a task does not have."""
        return [label for label in self.all_labels(texts) if label not in task.labels]

    def baseline(self, texts, metrics, task=None):
        """Measures the most frequent label as the answer to everything."""
        labels = self.all_labels(texts)
        (label, _), *_ = Counter(labels).most_common(1)
        counts = LabelCounts.of(labels, [label] * len(labels))
        values = {name: LABELS[name](counts) for name in metrics}
        return Baseline(f"{label!r}, the most frequent one", values)

    def judged(self, texts, answers):
        """Judges every row: a text may have another label elsewhere."""
        return [
            Judged(self.shown(source), label, best.text, self.error([label], best))
            for source, label in zip(texts.sources, texts.targets, strict=True)
            for best in [answers[source]]
        ]

    def error(self, references, best):
        """How wrong a label is: the probability that it was given, 0 if it is correct."""
        return 0.0 if best.text in references else math.exp(best.log_probability)

    def charts(self, task, texts, answers):
        judged = self.judged(texts, answers)
        answered = [(one.reference, one.prediction) for one in judged]
        probabilities = np.exp([answers[source].log_probability for source in texts.sources])
        correct = [one.error == 0 for one in judged]
        return confusion(answered, task.labels) | calibration(correct, probabilities)


def _hints(labels: list[str]) -> list[str]:
    """Lines about labels that look like numbers, or like several labels each."""
    if len(labels) > _MOST_NUMBERS and all(number_in(label)[1] is None for label in labels):
        count = f"{len(labels):,} different numbers"
        return [f"      note: the labels are {count}; --task regression predicts numbers"]
    for separator in _SEPARATORS:
        several = [label for label in labels if separator in label]
        parts = {part.strip() for label in labels for part in label.split(separator)}
        if several and len(parts) < len(labels):
            return [
                f"      note: labels such as {several[0]!r} look like several ones; "
                f"--label-separator '{separator}' reads them as such"
            ]
    return []
