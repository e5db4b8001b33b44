"""Runs of tasks from text to text."""

from collections.abc import Mapping
from typing import ClassVar

from keras_attn.data import PairExamples
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import CMUDICT
from keras_attn.training.task_runs.base import MOST_TOKENS, TaskRun, made_tokenizer
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require_one_of


class Seq2SeqRun(PairsRun):
    """Trains an encoder-decoder on pairs of texts."""

    task_class = Seq2SeqTask
    roles = ("source", "target")
    lengths: ClassVar = {"source": "max_source_length", "target": "max_target_length"}
    generates = True
    beams = 1

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
            return dict.fromkeys(self.roles, made_tokenizer(options.get("source"), both, "source"))
        source = made_tokenizer(options.get("source"), texts.sources, "source")
        target = made_tokenizer(options.get("target"), texts.targets, "target")
        return {"source": source, "target": target}

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return PairExamples.from_pairs(
            texts,
            tokenizers["source"],
            tokenizers["target"],
            settings.data.max_source_length or MOST_TOKENS,
            settings.data.max_target_length or MOST_TOKENS,
        )

    def lengths_of(self, task):
        return {"source": task.decoding.max_source_length, "target": task.decoding.max_length}

    def decoding_lengths(self, lengths, task):
        return {"max_source_length": lengths["source"], "max_length": lengths["target"]}

    def task(self, settings, texts, tokenizers, source_task):
        return seq2seq_task(self, settings, tokenizers, source_task)


def seq2seq_task(
    run: TaskRun,
    settings: RunSettings,
    tokenizers: Mapping[str, Tokenizer],
    source_task: Seq2SeqTask | None,
) -> Seq2SeqTask:
    """Makes the task of a run, of new weights or of those of `source_task`.

    Args:
        run: The run.
        settings: Its settings, the decoding lengths among them.
        tokenizers: The tokenizers by role.
        source_task: The task that the run starts from, if there is one.
    """
    source, target = tokenizers["source"], tokenizers["target"]
    if source_task:
        backbone, decoding = source_task.backbone, source_task.decoding
    else:
        sizes = {"vocabulary_size": source.vocabulary_size}
        if not settings.tokenizers.get("shared"):
            sizes["target_vocabulary_size"] = target.vocabulary_size
        longest = max(settings.decoding[name] for name in ("max_source_length", "max_length"))
        backbone, decoding = run.model(settings, longest, **sizes), DecodingSettings()
    return Seq2SeqTask(backbone, source, target, decoding.replace(**settings.decoding))
