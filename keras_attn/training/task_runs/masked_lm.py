"""Runs of masked language models."""

import dataclasses

from keras_attn.data import MaskedExamples, Masking
from keras_attn.models import MaskedLanguageModel, model_class
from keras_attn.tasks import MaskedLMTask
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.run_texts import read_line_parts, read_lines
from keras_attn.training.task_runs.base import MOST_TOKENS, TaskRun, fitting_lengths, made_tokenizer
from keras_attn.training.task_runs.encoders import encoder_of, other_starts
from keras_attn.validation import require, require_one_of


class MaskedLMRun(TaskRun):
    """Trains an encoder to guess hidden tokens of texts, one a line; long ones in pieces."""

    task_class = MaskedLMTask
    roles = ("text",)
    items = "lines"
    other_starts = other_starts(MaskedLMTask)

    def check(self, settings):
        super().check(settings)
        require(
            not settings.metrics,
            "A masked language model is measured by what it guesses, without `metrics`.",
            metrics=settings.metrics,
        )
        require(
            not settings.decoding,
            "A masked language model has no `decoding`.",
            decoding=settings.decoding,
        )

    def read_texts(self, data, seed):
        return read_line_parts(data, seed)

    def read_test(self, paths, data):
        return read_lines(paths)

    def train_tokenizers(self, settings, texts):
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.roles)
        return {"text": made_tokenizer(settings.tokenizers.get("text"), texts.texts, "text")}

    def examples(self, settings, texts, tokenizers, initial):
        limit = settings.data.max_source_length or (initial.max_length if initial else None)
        examples = MaskedExamples.from_texts(
            texts.texts,
            Masking(tokenizers["text"], settings.data.whole_words),
            limit or MOST_TOKENS,
            texts.name,
            seed=settings.training.seed,
        )
        limit = fitting_lengths({"text": limit}, examples)["text"]
        data = dataclasses.replace(settings.data, max_source_length=limit)
        return settings.replace(data=data), examples

    def task(self, settings, texts, tokenizers, initial):
        longest = settings.data.max_source_length
        if initial:
            return MaskedLMTask(initial.backbone, tokenizers["text"], longest)
        arguments = {"dtype": settings.training.precision} | settings.model
        arguments |= self.attention(settings, longest)
        encoder = model_class(settings.preset).from_preset(
            settings.preset, tokenizers["text"].vocabulary_size, **arguments
        )
        return MaskedLMTask(MaskedLanguageModel(encoder), tokenizers["text"], longest)

    def with_new_head(self, initial, settings, texts):
        model = MaskedLanguageModel(encoder_of(initial))
        return MaskedLMTask(model, initial.tokenizer, initial.max_length)

    def validation_set(self, task, settings, texts):
        # Of another seed than that of the training: what is hidden stays the same in all runs.
        masking = Masking(task.tokenizer, settings.data.whole_words)
        return ValidationSet(
            MaskedExamples.from_texts(texts.texts, masking, task.max_length, texts.name)
        )

    def check_test(self, settings, texts, task):
        pass  # What is too long is measured in pieces.

    def measure(self, task, texts, metrics, beams=None, perplexity=True, progress=None):
        for name in metrics:
            require_one_of("metrics", name, ["perplexity", "accuracy"])
        require(
            isinstance(task, MaskedLMTask),
            "A masked language model is measured as a run or a task folder.",
            task=task.kind,
        )
        require(beams is None, "Gaps are filled without a beam search.", beams=beams)
        results = {"items": len(texts)} | task.masked_scores(texts.texts)
        if progress:
            progress(len(texts))
        return results
