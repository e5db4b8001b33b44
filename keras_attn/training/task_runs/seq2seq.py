"""Runs of tasks from text to text."""

import dataclasses
from collections.abc import Mapping

from keras_attn.data import PairExamples
from keras_attn.models import model_class
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import CMUDICT
from keras_attn.training.task_runs.base import (
    MOST_TOKENS,
    TaskRun,
    fitting_lengths,
    made_tokenizer,
)
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require_one_of


class Seq2SeqRun(PairsRun):
    """Trains an encoder-decoder on pairs of texts."""

    task_class = Seq2SeqTask
    roles = ("source", "target")
    beams = 1

    def check(self, settings):
        super().check(settings)
        DecodingSettings().replace(**settings.decoding)

    def longest_source(self, settings):
        return settings.decoding["max_source_length"]

    def default_metrics(self, data):
        return ["per", "wer"] if list(data) == [CMUDICT] else ["bleu", "chrf", "wer"]

    def train_tokenizers(self, settings, texts):
        options = dict(settings.tokenizers)
        shared = options.pop("shared", False)
        for role in options:
            require_one_of("tokenizers", role, ["shared", *self.roles])
        if shared:
            both = [*texts.sources, *texts.targets]
            source = target = made_tokenizer(options.get("source"), both, "source")
        else:
            source = made_tokenizer(options.get("source"), texts.sources, "source")
            target = made_tokenizer(options.get("target"), texts.targets, "target")
        return {"source": source, "target": target}

    def examples(self, settings, texts, tokenizers, initial):
        data = settings.data
        limits = {"source": data.max_source_length, "target": data.max_target_length}
        if initial:
            # What the loaded task takes and gives stays as it is, whatever the new texts are.
            limits["source"] = limits["source"] or initial.decoding.max_source_length
            limits["target"] = limits["target"] or initial.decoding.max_length
        examples = PairExamples.from_pairs(
            texts,
            tokenizers["source"],
            tokenizers["target"],
            limits["source"] or MOST_TOKENS,
            limits["target"] or MOST_TOKENS,
        )
        limits = fitting_lengths(limits, examples)
        data = dataclasses.replace(
            data, max_source_length=limits["source"], max_target_length=limits["target"]
        )
        decoding = dict(settings.decoding)
        decoding.setdefault("max_source_length", limits["source"])
        decoding.setdefault("max_length", limits["target"])
        return settings.replace(data=data, decoding=decoding), examples

    def task(self, settings, texts, tokenizers, initial):
        return make_seq2seq_task(self, settings, tokenizers, initial)

    def validation_set(self, task, settings, texts):
        examples = PairExamples.from_pairs(
            texts,
            task.source_tokenizer,
            task.target_tokenizer,
            settings.data.max_source_length,
            settings.data.max_target_length,
        )
        return self.pair_validation(task, examples, texts, settings)


def make_seq2seq_task(
    kind: TaskRun,
    settings: RunSettings,
    tokenizers: Mapping[str, Tokenizer],
    initial: Seq2SeqTask | None,
) -> Seq2SeqTask:
    """Makes the task of a run, of new weights or of those of `initial`.

    Args:
        kind: The kind of the run.
        settings: Those of the run, the decoding lengths among them.
        tokenizers: The tokenizers by role.
        initial: The task that the run begins with, if there is one.
    """
    source, target = tokenizers["source"], tokenizers["target"]
    if initial:
        backbone, decoding = initial.backbone, initial.decoding
    else:
        arguments = {
            "vocabulary_size": source.vocabulary_size,
            "dtype": settings.training.precision,
        }
        if not settings.tokenizers.get("shared"):
            arguments["target_vocabulary_size"] = target.vocabulary_size
        longest = max(settings.decoding[name] for name in ("max_source_length", "max_length"))
        arguments |= kind.attention(settings, longest)
        family = model_class(settings.preset)
        backbone = family.from_preset(settings.preset, **(arguments | settings.model))
        decoding = DecodingSettings()
    return Seq2SeqTask(backbone, source, target, decoding.replace(**settings.decoding))
