"""Runs that pre-train an encoder-decoder on texts alone, as T5 is."""

import dataclasses
from collections.abc import Mapping

from keras_attn.data import CorruptedExamples, SpanCorruption, SpanNoise
from keras_attn.tasks import DecodingSettings, Seq2SeqTask, token_scores
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.run_texts import read_line_parts, read_lines
from keras_attn.training.task_runs.base import TaskRun, made_tokenizer
from keras_attn.training.task_runs.seq2seq import make_seq2seq_task
from keras_attn.validation import require, require_one_of


class SpanCorruptionRun(TaskRun):
    """Trains an encoder-decoder to tell dropped spans of texts, one a line; long ones in pieces."""

    name = "span_corruption"
    task_class = Seq2SeqTask
    roles = ("source", "target")
    items = "lines"

    def check(self, settings):
        super().check(settings)
        require(
            not settings.metrics,
            "Span corruption is measured by the spans that are told, without `metrics`.",
            metrics=settings.metrics,
        )
        DecodingSettings().replace(**settings.decoding)
        _noise(settings.data)

    def read_texts(self, data, seed):
        return read_line_parts(data, seed)

    def read_test(self, paths, data):
        return read_lines(paths)

    def train_tokenizers(self, settings, texts):
        options = dict(settings.tokenizers)
        for role in options:
            require_one_of("tokenizers", role, ["shared", "source"])
        require(
            options.get("shared") is True,
            "Span corruption has one tokenizer for both sides, `tokenizers.shared`.",
            shared=options.get("shared"),
        )
        tokenizer = made_tokenizer(options.get("source"), texts.texts, "source")
        return dict.fromkeys(self.roles, tokenizer)

    def examples(self, settings, texts, tokenizers, initial):
        data, most = settings.data, initial.decoding if initial else DecodingSettings()
        longest = data.max_source_length or most.max_source_length
        corruption = _corruption(data, tokenizers)
        examples = CorruptedExamples.from_texts(
            texts.texts,
            corruption,
            longest,
            data.max_target_length,
            texts.name,
            seed=settings.training.seed,
        )
        _, target = corruption.lengths(corruption.longest_text(longest, data.max_target_length))
        data = dataclasses.replace(data, max_source_length=longest, max_target_length=int(target))
        # Not the length of a few spans: room for what it is to give when it has been fine-tuned.
        decoding = {"max_source_length": longest, "max_length": most.max_length}
        return settings.replace(data=data, decoding=decoding | settings.decoding), examples

    def task(self, settings, texts, tokenizers, initial):
        return make_seq2seq_task(self, settings, tokenizers, initial)

    def validation_set(self, task, settings, texts):
        # Of another seed than that of the training: what is dropped stays the same in all runs.
        data = settings.data
        examples = CorruptedExamples.from_texts(
            texts.texts,
            _corruption(data, task.tokenizers),
            data.max_source_length,
            data.max_target_length,
            texts.name,
        )
        return ValidationSet(examples)

    def check_test(self, settings, texts, task):
        pass  # What is too long is measured in pieces.

    def measure(self, task, texts, metrics, beams=None, perplexity=True, progress=None):
        """Measures a task on texts of which spans are dropped as in the paper, always the same."""
        for name in metrics:
            require_one_of("metrics", name, ["perplexity", "accuracy"])
        require(
            isinstance(task, Seq2SeqTask),
            "Dropped spans are measured with a run or a task folder.",
            task=task.kind,
        )
        require(beams is None, "Dropped spans are measured without a beam search.", beams=beams)
        corruption = SpanCorruption(_one_tokenizer(task.tokenizers))
        longest = task.decoding.max_source_length
        examples = CorruptedExamples.from_texts(texts.texts, corruption, longest, name=texts.name)
        results = {"items": len(texts)} | token_scores(task.backbone, examples)
        if progress:
            progress(len(texts))
        return results


def _noise(data: DataSettings) -> SpanNoise:
    return SpanNoise(data.noise_density, data.mean_noise_span_length)


def _corruption(data: DataSettings, tokenizers: Mapping[str, Tokenizer]) -> SpanCorruption:
    return SpanCorruption(_one_tokenizer(tokenizers), _noise(data))


def _one_tokenizer(tokenizers: Mapping[str, Tokenizer]) -> Tokenizer:
    source, target = tokenizers["source"], tokenizers["target"]
    require(
        source.vocabulary == target.vocabulary,
        "Span corruption needs a task with one vocabulary for both sides.",
        source=source.vocabulary_size,
        target=target.vocabulary_size,
    )
    return source
