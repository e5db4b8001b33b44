"""Runs of language models."""

import dataclasses

from keras_attn.data import TextExamples
from keras_attn.models import model_class
from keras_attn.tasks import CausalLMTask, DecodingSettings, ExportedCausalLM
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.run_texts import read_line_parts, read_lines
from keras_attn.training.task_runs.base import MOST_TOKENS, TaskRun, fitting_lengths, made_tokenizer
from keras_attn.validation import require, require_one_of


class LanguageModelRun(TaskRun):
    """Trains a decoder on texts, one a line; those that are too long in pieces."""

    task_class = CausalLMTask
    roles = ("text",)
    items = "lines"

    def check(self, settings):
        super().check(settings)
        require(
            not settings.metrics,
            "A language model is measured by its perplexity, without `metrics`.",
            metrics=settings.metrics,
        )
        DecodingSettings().replace(**settings.decoding)

    def read_texts(self, data, seed):
        return read_line_parts(data, seed)

    def read_test(self, paths, data):
        return read_lines(paths)

    def train_tokenizers(self, settings, texts):
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.roles)
        return {"text": made_tokenizer(settings.tokenizers.get("text"), texts.texts, "text")}

    def examples(self, settings, texts, tokenizers, initial):
        limit = settings.data.max_source_length
        if initial:
            limit = limit or initial.decoding.max_length
        examples = TextExamples.from_texts(
            texts.texts, tokenizers["text"], limit or MOST_TOKENS, texts.name
        )
        limit = fitting_lengths({"text": limit}, examples)["text"]
        data = dataclasses.replace(settings.data, max_source_length=limit)
        decoding = dict(settings.decoding)
        decoding.setdefault("max_source_length", limit)
        decoding.setdefault("max_length", limit)
        return settings.replace(data=data, decoding=decoding), examples

    def task(self, settings, texts, tokenizers, initial):
        tokenizer = tokenizers["text"]
        if initial:
            backbone, decoding = initial.backbone, initial.decoding
        else:
            arguments = {"dtype": settings.training.precision} | settings.model
            # A prompt and its continuation.
            longest = sum(settings.decoding[name] for name in ("max_source_length", "max_length"))
            arguments |= self.attention(settings, longest)
            backbone = model_class(settings.preset).from_preset(
                settings.preset, tokenizer.vocabulary_size, **arguments
            )
            decoding = DecodingSettings()
        return CausalLMTask(backbone, tokenizer, decoding.replace(**settings.decoding))

    def validation_set(self, task, settings, texts):
        examples = TextExamples.from_texts(
            texts.texts, task.tokenizer, settings.data.max_source_length, texts.name
        )
        return ValidationSet(examples)

    def check_test(self, settings, texts, task):
        pass  # What is too long is measured in pieces.

    def measure(self, task, texts, metrics, beams=None, perplexity=True, progress=None):
        for name in metrics:
            require_one_of("metrics", name, ["perplexity"])
        require(
            isinstance(task, CausalLMTask | ExportedCausalLM),
            "Only a language model is measured so.",
            task=task.kind,
        )
        require(beams is None, "Perplexity needs no beam search.", beams=beams)
        results = {"items": len(texts), "perplexity": task.text_perplexity(texts.texts)}
        if progress:
            progress(len(texts))
        return results
