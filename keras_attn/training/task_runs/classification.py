"""Runs of tasks from text to label."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_attn.data import LabelledExamples, Pairs
from keras_attn.evaluation import LABELS, LabelCounts
from keras_attn.models import SequenceClassifier
from keras_attn.tasks import ClassificationTask, LabelTask, Task, measure_labels
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.reporting.errors import Baseline
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import hold_out_pairs
from keras_attn.training.task_runs.base import MOST_TOKENS
from keras_attn.training.task_runs.encoders import ENCODER_TASKS, encoder_of
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require, require_one_of

_SHOWN = 5
_DESCRIBED = 10


class ClassificationRun(PairsRun):
    """Trains an encoder and a head on texts with labels, the targets of the pairs."""

    task_class = ClassificationTask
    roles = ("text",)
    columns = ("text", "label")
    has_labels = True
    long_texts = ("cut", "drop", "error")
    head_class: ClassVar[type[keras.Model]] = SequenceClassifier
    model_settings = ("pooling",)
    other_starts = ENCODER_TASKS

    known_metrics: ClassVar[tuple[str, ...]] = tuple(LABELS)
    """Names of the task's metrics."""

    def hold_out(self, texts, data, seed):
        return hold_out_pairs(texts, data, seed, stratify=data.stratify)

    def check(self, settings):
        super().check(settings)
        for name in settings.metrics:
            require_one_of("metrics", name, self.known_metrics)

    def default_metrics(self, data):
        return ["accuracy", "macro_f1", "weighted_f1"]

    def metrics_of(self, texts, data, chosen):
        return self.default_metrics(data)

    def goal(self, metric):
        require_one_of("metric", metric, LABELS)
        return "max"

    def measure(self, task, texts, metrics, beams=None, perplexity=False, progress=None):
        self.refuse_search(beams, perplexity)
        return measure_labels(task, texts, metrics, progress)

    def count(self, texts):
        return len(texts)

    def columns_of(self, texts, roles):
        return [texts.sources]

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return LabelledExamples.from_pairs(
            texts,
            tokenizers["text"],
            self.labels(texts, task),
            settings.data.max_source_length or MOST_TOKENS,
            with_start=bool(task) and task.with_start,
            long_texts=self.for_long_texts(settings),
        )

    def task(self, settings, texts, tokenizers, source_task):
        labels = self.labels(texts, source_task)
        if source_task:
            model = source_task.backbone
        else:
            encoder, head = self.encoder(settings, tokenizers), self.head_in(settings.model)
            model = self.on_top_of(encoder, labels, head)
        task = self.made(model, tokenizers, labels, settings, source_task)
        if settings.training.class_weights:
            task.class_weights = self.balanced_weights(texts, labels)
        return task

    def balanced_weights(self, texts: Pairs, labels: list[str]) -> list[float]:
        """Weights of labels by which all count alike, and an example counts 1 in the mean."""
        counts = Counter(self.all_labels(texts))
        total = sum(counts.values()) / sum(counts[label] > 0 for label in labels)
        return [total / max(counts[label], 1) for label in labels]

    def encoder(self, settings: RunSettings, tokenizers: Mapping[str, Tokenizer]) -> keras.Model:
        """Makes the untrained encoder of a preset."""
        vocabulary_size = tokenizers["text"].vocabulary_size
        return self.model(settings, settings.data.max_source_length, vocabulary_size)

    def made(
        self,
        model: keras.Model,
        tokenizers: Mapping[str, Tokenizer],
        labels: list[str],
        settings: RunSettings,
        source_task: Task | None,
    ) -> LabelTask:
        """Makes the task of a model, which may begin with that of `source_task`."""
        # The start token is before texts as the encoder knows them: those of most tasks have it.
        with_start = source_task is not None and getattr(source_task, "with_start", True)
        longest, truncate = self.longest(settings, source_task)
        return self.task_class(model, tokenizers["text"], labels, longest, with_start, truncate)

    def longest(self, settings: RunSettings, source_task: Task | None) -> tuple[int, bool]:
        """Most tokens of a text of the task, and whether longer ones are truncated."""
        longest = settings.data.max_source_length or self.lengths_of(source_task).get("text")
        return longest, self.for_long_texts(settings) == "cut"

    def needs_new_head(self, source_task, texts):
        return super().needs_new_head(source_task, texts) or not (
            set(self.all_labels(texts)) <= set(source_task.labels)
        )

    def with_new_head(self, source_task, settings, texts):
        labels, head = self.labels(texts, None), settings.model
        if isinstance(source_task, self.task_class):
            head = self.head_in(source_task.backbone.get_config())
        model = self.on_top_of(encoder_of(source_task), labels, head)
        return self.made(model, source_task.tokenizers, labels, settings, source_task)

    def head_in(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a head among others."""
        return {name: sizes[name] for name in self.model_settings if name in sizes}

    def source_frame(self, task):
        return task.frame

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
        rare = [label for label, count in counts if count == 1]
        if rare:
            names = ", ".join(map(repr, rare[:_SHOWN])) + (" …" if len(rare) > _SHOWN else "")
            lines.append(f"   warning: {len(rare):,} labels occur only once: {names}")
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

    def baseline(self, texts, metrics):
        """Measures the most frequent label as the answer to everything."""
        labels = self.all_labels(texts)
        (label, _), *_ = Counter(labels).most_common(1)
        counts = LabelCounts.of(labels, [label] * len(labels))
        values = {name: LABELS[name](counts) for name in metrics}
        return Baseline(f"{label!r}, the most frequent one", values)

    def error(self, references, best):
        """How wrong a label is: the probability that it was given, 0 if it is correct."""
        return 0.0 if best.text in references else math.exp(best.log_probability)

    def answered(self, judged):
        return [(one.reference if one.error else one.prediction, one.prediction) for one in judged]

    def on_top_of(
        self, encoder: keras.Model, labels: list[str], head: Mapping[str, Any]
    ) -> keras.Model:
        """Puts an untrained head on an encoder, with as much dropout."""
        dropout = encoder.get_config().get("dropout", 0.0)
        return self.head_class(encoder, len(labels), dropout=dropout, **head)
