"""Runs of tasks from text to label."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_attn.data import Examples, LabelledExamples, Pairs
from keras_attn.models import SequenceClassifier, model_class
from keras_attn.tasks import ClassificationTask, LabelTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.task_runs.base import MOST_TOKENS, fitting_lengths, made_tokenizer
from keras_attn.training.task_runs.encoders import encoder_of, other_starts
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require, require_one_of

_SHOWN = 5


class ClassificationRun(PairsRun):
    """Trains an encoder and a head on texts with labels, the targets of the pairs."""

    task_class = ClassificationTask
    roles = ("text",)
    model_settings = ("pooling",)
    other_starts = other_starts(ClassificationTask)

    known_metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    """What texts can be measured by."""

    def check(self, settings):
        super().check(settings)
        require(
            not settings.decoding, "A classifier has no `decoding`.", decoding=settings.decoding
        )
        for name in settings.metrics:
            require_one_of("metrics", name, self.known_metrics)

    def default_metrics(self, data):
        return ["exact_match"]

    def train_tokenizers(self, settings, texts):
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.roles)
        return {
            role: made_tokenizer(settings.tokenizers.get(role), texts.sources, role)
            for role in self.roles
        }

    def examples(self, settings, texts, tokenizers, initial):
        limit = settings.data.max_source_length or (initial.max_length if initial else None)
        labels = self.labels(texts, initial)
        examples = self.labelled(texts, tokenizers["text"], labels, limit or MOST_TOKENS, initial)
        limits = fitting_lengths({"text": limit}, examples)
        data = dataclasses.replace(settings.data, max_source_length=limits["text"])
        return settings.replace(data=data), examples

    def task(self, settings, texts, tokenizers, initial):
        labels, tokenizer = self.labels(texts, initial), tokenizers["text"]
        longest = settings.data.max_source_length
        if initial:
            return ClassificationTask(
                initial.backbone, tokenizer, labels, longest, initial.with_start
            )
        model = self.classifier(settings, labels, longest, tokenizer.vocabulary_size)
        return ClassificationTask(model, tokenizer, labels, longest)

    def needs_new_head(self, initial, texts):
        return super().needs_new_head(initial, texts) or not (
            set(self.all_labels(texts)) <= set(initial.labels)
        )

    def with_new_head(self, initial, settings, texts):
        labels, head, with_start = self.labels(texts, None), settings.model, True
        if isinstance(initial, ClassificationTask):
            head, with_start = self.head_of(initial), initial.with_start
        model = self.on_top_of(encoder_of(initial), labels, head)
        # Texts as those that the encoder knows: of most tasks they begin with the start token.
        return ClassificationTask(model, initial.tokenizer, labels, initial.max_length, with_start)

    def head_of(self, task: LabelTask) -> dict[str, Any]:
        """The settings of a task's head."""
        config = task.backbone.get_config()
        return {name: config[name] for name in self.model_settings}

    def validation_set(self, task, settings, texts):
        limit = settings.data.max_source_length
        examples = self.labelled(texts, task.tokenizer, task.labels, limit, task)
        return self.pair_validation(task, examples, texts, settings)

    def source_frame(self, task):
        return task.frame

    def labelled(
        self,
        texts: Pairs,
        tokenizer: Tokenizer,
        labels: list[str],
        max_length: int,
        task: LabelTask | None,
    ) -> Examples:
        """Tokenises texts, as `task` reads them where there is one already."""
        with_start = bool(task) and task.with_start
        return LabelledExamples.from_pairs(texts, tokenizer, labels, max_length, with_start)

    def labels(self, texts: Pairs, initial: LabelTask | None) -> list[str]:
        """The labels there are, in the order of their numbers."""
        return initial.labels if initial else sorted(set(self.all_labels(texts)))

    def all_labels(self, texts: Pairs) -> list[str]:
        """The labels of all texts, one after the other."""
        return texts.targets

    def remarks(self, task, texts):
        if not isinstance(task, LabelTask):
            return []  # an exported one does not tell its labels
        labels = self.all_labels(texts)
        unknown = [label for label in labels if label not in task.labels]
        if not unknown:
            return []
        names = list(dict.fromkeys(unknown))
        shown = ", ".join(map(repr, names[:_SHOWN])) + (" …" if len(names) > _SHOWN else "")
        return [
            f"{texts.name}: {len(unknown):,} of {len(labels):,} labels are none that the model "
            f"knows, and count as wrong: {shown}"
        ]

    def classifier(
        self, settings: RunSettings, labels: list[str], longest: int, *arguments: Any
    ) -> keras.Model:
        """Makes the untrained model of a preset.

        Args:
            settings: Those of the run.
            labels: The labels.
            longest: Greatest length of what the model's attention sees.
            *arguments: What no preset says of its encoder.
        """
        sizes = {"dtype": settings.training.precision} | settings.model
        sizes |= self.attention(settings, longest)
        head = {name: sizes.pop(name) for name in self.model_settings if name in sizes}
        preset = settings.preset
        encoder = model_class(preset).from_preset(preset, *arguments, **sizes)
        return self.on_top_of(encoder, labels, head)

    def on_top_of(
        self, encoder: keras.Model, labels: list[str], head: Mapping[str, Any]
    ) -> keras.Model:
        """Puts an untrained head on an encoder, with as much dropout."""
        dropout = encoder.get_config().get("dropout", 0.0)
        return SequenceClassifier(encoder, len(labels), dropout=dropout, **head)
