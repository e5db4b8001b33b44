"""Runs of tasks from text to vector."""

import dataclasses

import numpy as np

from keras_attn.data import (
    PartnerExamples,
    ScoredPairs,
    group_references,
    has_scores,
    read_scored_pairs,
)
from keras_attn.evaluation import CORRELATIONS, RETRIEVAL
from keras_attn.models import model_class
from keras_attn.tasks import EmbeddingTask, measure_vectors
from keras_attn.training.task_runs.base import MOST_TOKENS, fitting_lengths, made_tokenizer
from keras_attn.training.task_runs.encoders import encoder_of, other_starts
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require, require_one_of

_POOLING = ("pooling", "normalize")


class EmbeddingRun(PairsRun):
    """Trains an encoder on pairs of texts that belong together.

    Every text is to find its partner among those of its batch, in both directions. With several
    devices, or batches that make one update together, each looks in its own part.
    """

    task_class = EmbeddingTask
    roles = ("text",)
    model_settings = _POOLING
    other_starts = other_starts(EmbeddingTask)
    independent_rows = False

    def check(self, settings):
        super().check(settings)
        require(
            not settings.decoding, "An embedding has no `decoding`.", decoding=settings.decoding
        )
        training = settings.training
        require(
            training.consistency == 0,
            "`training.consistency` compares probabilities, which an embedding has not.",
            consistency=training.consistency,
        )
        require(
            training.parts in (0, 1),
            "`training.parts` would take partners apart: an embedding needs whole batches.",
            parts=training.parts,
        )

    def goal(self, metric):
        require_one_of("metric", metric, RETRIEVAL)
        return "max"

    def default_metrics(self, data):
        return list(RETRIEVAL)

    def metrics_of(self, texts, data, chosen):
        if isinstance(texts, ScoredPairs):
            return list(CORRELATIONS)
        return super().metrics_of(texts, data, chosen)

    def read_test(self, paths, data):
        if len(paths) == 1 and has_scores(paths[0]):
            return read_scored_pairs(paths[0], data.skip_bad_lines)
        return super().read_test(paths, data)

    def check_test(self, settings, texts, task):
        pass  # What is too long is cut.

    def train_tokenizers(self, settings, texts):
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.roles)
        both = [*texts.sources, *texts.targets]
        return {"text": made_tokenizer(settings.tokenizers.get("text"), both, "text")}

    def examples(self, settings, texts, tokenizers, initial):
        limit = settings.data.max_source_length or (initial.max_length if initial else None)
        examples = PartnerExamples.from_pairs(texts, tokenizers["text"], limit or MOST_TOKENS)
        limit = max(fitting_lengths(dict.fromkeys(examples.sides, limit), examples).values())
        data = dataclasses.replace(settings.data, max_source_length=limit, max_target_length=limit)
        return settings.replace(data=data), examples

    def task(self, settings, texts, tokenizers, initial):
        longest = settings.data.max_source_length
        if initial:
            backbone = initial.backbone
            pooling = {name: getattr(initial, name) for name in (*_POOLING, "truncate")}
        else:
            arguments = {"dtype": settings.training.precision} | settings.model
            arguments |= self.attention(settings, longest)
            pooling = {name: arguments.pop(name) for name in _POOLING if name in arguments}
            backbone = model_class(settings.preset).from_preset(
                settings.preset, tokenizers["text"].vocabulary_size, **arguments
            )
        return EmbeddingTask(backbone, tokenizers["text"], max_length=longest, **pooling)

    def with_new_head(self, initial, settings, texts):
        return EmbeddingTask(
            encoder_of(initial),
            initial.tokenizer,
            max_length=initial.max_length,
            **settings.model,
        )

    def validation_set(self, task, settings, texts):
        examples = PartnerExamples.from_pairs(texts, task.tokenizer, task.max_length)
        return self.pair_validation(task, examples, texts, settings)

    def measure(self, task, texts, metrics, beams=None, perplexity=False, progress=None):
        require(
            beams is None and not perplexity,
            "A vector has no beams and no perplexity.",
            beams=beams,
            perplexity=perplexity,
        )
        return measure_vectors(task, texts, metrics, progress)

    def count(self, texts):
        if isinstance(texts, ScoredPairs):
            return 2 * len(texts)
        return len(set(texts.sources)) + len(set(texts.targets))

    def samples(self, task, pairs):
        sources, references = group_references(pairs)
        found = list(dict.fromkeys(pairs.targets))
        nearest = np.argmax(task.predict(sources) @ task.predict(found).T, axis=1)
        return [
            (source, " / ".join(texts), found[place])
            for source, texts, place in zip(sources, references, nearest, strict=True)
        ]
