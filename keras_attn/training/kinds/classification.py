"""Runs of tasks from text to label."""

import dataclasses

from keras_attn.data import LabelledExamples
from keras_attn.models import SequenceClassifier, model_class
from keras_attn.tasks import ClassificationTask
from keras_attn.training.kinds.base import MOST_TOKENS, fitting_lengths, made_tokenizer
from keras_attn.training.kinds.pairs import PairsRun
from keras_attn.validation import require, require_one_of

_HEAD = ("pooling",)


class ClassificationRun(PairsRun):
    """Trains an encoder and a head on texts with labels, the targets of the pairs."""

    task_class = ClassificationTask
    roles = ("text",)
    model_settings = _HEAD

    def check(self, settings):
        super().check(settings)
        require(
            not settings.decoding, "A classifier has no `decoding`.", decoding=settings.decoding
        )
        for name in settings.metrics:
            require_one_of("metrics", name, ["exact_match"])

    def default_metrics(self, data):
        return ["exact_match"]

    def train_tokenizers(self, settings, texts):
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.roles)
        return {"text": made_tokenizer(settings.tokenizers.get("text"), texts.sources, "text")}

    def examples(self, settings, texts, tokenizers, initial):
        limit = settings.data.max_source_length or (initial.max_length if initial else None)
        examples = LabelledExamples.from_pairs(
            texts, tokenizers["text"], _labels(texts, initial), limit or MOST_TOKENS
        )
        limits = fitting_lengths({"text": limit}, examples)
        data = dataclasses.replace(settings.data, max_source_length=limits["text"])
        return settings.replace(data=data), examples

    def task(self, settings, texts, tokenizers, initial):
        labels = _labels(texts, initial)
        if initial:
            model = initial.backbone
        else:
            arguments = {"dtype": settings.training.precision} | settings.model
            arguments |= self.attention(settings, settings.data.max_source_length)
            head = {name: arguments.pop(name) for name in _HEAD if name in arguments}
            encoder = model_class(settings.preset).from_preset(
                settings.preset, tokenizers["text"].vocabulary_size, **arguments
            )
            dropout = encoder.get_config().get("dropout", 0.0)
            model = SequenceClassifier(encoder, len(labels), dropout=dropout, **head)
        return ClassificationTask(
            model, tokenizers["text"], labels, settings.data.max_source_length
        )

    def validation_set(self, task, settings, texts):
        examples = LabelledExamples.from_pairs(
            texts, task.tokenizer, task.labels, settings.data.max_source_length
        )
        return self.pair_validation(task, examples, texts, settings)


def _labels(texts, initial) -> list[str]:
    return initial.labels if initial else sorted(set(texts.targets))
