"""Runs of tasks from text to a tag for each word."""

import dataclasses
from collections import Counter
from typing import ClassVar

from keras_attn.data import TaggedExamples
from keras_attn.data.examples.tagged import wrong_tags
from keras_attn.data.overview import ONE_WORD
from keras_attn.evaluation import TAGGING
from keras_attn.models import TokenClassifier
from keras_attn.tasks import TokenClassificationTask
from keras_attn.tasks.measuring.labels import judged_tags, tag_scores
from keras_attn.tasks.token_classification import UNTAGGED
from keras_attn.tokenizers import split_words
from keras_attn.training.named_sets import TAGGED_SETS
from keras_attn.training.reporting.errors import Baseline, Judged, confusion
from keras_attn.training.run_texts import hold_out_pairs
from keras_attn.training.task_runs.classification import ClassificationRun
from keras_attn.training.task_runs.encoders import ENCODER_TASKS


class TokenClassificationRun(ClassificationRun):
    """Trains an encoder and a head on texts with a tag for each word, the targets of the pairs."""

    task_class = TokenClassificationTask
    columns = ("text", "tags")
    mistake = staticmethod(wrong_tags)
    items = "texts"
    head_class = TokenClassifier
    model_settings = ()
    known_data: ClassVar = TAGGED_SETS
    has_tags = True
    known_metrics = tuple(TAGGING)
    alike = ()
    other_starts = ENCODER_TASKS

    def answered(self, settings, texts, teachers, answers):
        found = super().answered(settings, texts, teachers, answers)
        if not settings.data.unlabeled:
            return found
        # Words that are too far behind for the teachers.
        return {
            part: dataclasses.replace(pairs, untagged=pairs.untagged or UNTAGGED)
            for part, pairs in found.items()
        }

    def hold_out(self, texts, data, seed):
        return hold_out_pairs(texts, data, seed)

    def metrics_of(self, texts, data, chosen):
        return chosen or self.default_metrics(data)

    def default_metrics(self, data):
        return ["tag_accuracy", "span_f1"]

    def recognized(self, data):
        return self.name

    def described(self, texts):
        lines = super().described(texts)
        if all(len(tags.split()) == 1 for tags in texts.targets):
            lines.append(f"   warning: {ONE_WORD}")
        return lines

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        # A rare tag may be in the held-out texts alone: it is never predicted, and counts as wrong.
        return TaggedExamples.from_pairs(
            texts,
            tokenizers["text"],
            self.labels(texts, task),
            settings.data.max_source_length or self.most_tokens,
            other_tags=held_out,
            long_texts=self.for_long_texts(settings),
        )

    def made(self, model, tokenizers, head, settings, source_task):
        longest, truncate = self.longest(settings, source_task)
        return self.task_class(model, tokenizers["text"], *head, longest, truncate)

    def source_lengths(self, task, sources):
        return task.token_counts(sources)

    def scores(self, texts, answers, metrics):
        return tag_scores(texts, answers, metrics)

    def baseline(self, texts, metrics, task=None):
        """Measures the most frequent tag as that of every word."""
        references = [
            judged_tags(tags, tags, texts.untagged) for tags in map(split_words, texts.targets)
        ]
        (tag, _), *_ = Counter(self.all_labels(texts)).most_common(1)
        found = [[tag] * len(tags) for tags in references]
        values = {name: TAGGING[name](found, references) for name in metrics}
        return Baseline(f"{tag!r}, the most frequent one", values)

    def error(self, references, best):
        """How wrong the tags are: the number of wrong ones, against the closest reference."""
        tags = split_words(best.text)
        return min(_wrong(tags, split_words(reference)) for reference in references)

    def judged(self, texts, answers):
        judged = super().judged(texts, answers)
        if texts.untagged is None:
            return judged
        return [
            one._replace(error=_wrong(*_tags_and_reference(one), untagged=texts.untagged))
            for one in judged
        ]

    def charts(self, task, texts, answers):
        pairs = _answered(self.judged(texts, answers))
        return confusion([pair for pair in pairs if pair[0] != texts.untagged], task.labels)

    def read_files(self, paths, data):
        return dataclasses.replace(super().read_files(paths, data), untagged=data.untagged)

    def all_labels(self, texts):
        return [tag for tags in texts.targets for tag in split_words(tags) if tag != texts.untagged]


def _tags_and_reference(judged: Judged) -> tuple[list[str], list[str]]:
    return split_words(judged.prediction), split_words(judged.reference)


def _answered(judged: list[Judged]) -> list[tuple[str, str]]:
    """Pairs of the correct tag and the predicted one."""
    tags = [(split_words(one.reference), split_words(one.prediction)) for one in judged]
    return [
        pair for pair in tags if len(pair[0]) == len(pair[1]) for pair in zip(*pair, strict=True)
    ]


def _wrong(tags: list[str], reference: list[str], untagged: str | None = None) -> int:
    pairs = zip(tags, reference, strict=True)
    return sum(tag != right for tag, right in pairs if right != untagged)
