"""Runs of tasks from text to vector."""

import dataclasses
from typing import ClassVar

import numpy as np

from keras_attn.data import (
    PartnerExamples,
    ScoredPairs,
    group_references,
    has_scores,
    read_scored_pairs,
)
from keras_attn.evaluation import CORRELATIONS, RETRIEVAL
from keras_attn.evaluation.correlation import ranks_of
from keras_attn.tasks import EmbeddingTask
from keras_attn.tasks.measuring.vectors import partners_found, vector_scores, vectors_of
from keras_attn.training.loop.teaching import Teaching
from keras_attn.training.named_sets import named_set
from keras_attn.training.reporting.errors import Judged
from keras_attn.training.run_texts import reported
from keras_attn.training.task_runs.encoders import ENCODER_TASKS, encoder_of
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.training.task_runs.soft_targets import VECTORS
from keras_attn.training.task_runs.taught_vectors import (
    VectorTargets,
    joint_vectors,
    projection,
    texts_by_number,
)
from keras_attn.validation import require, require_one_of

_POOLING = ("pooling", "normalize")


class EmbeddingRun(PairsRun):
    """Trains an encoder on pairs of texts that belong together.

    Every text is to find its partner among those of its batch, in both directions. With several
    devices, or batches that make one update together, each looks in its own part.
    """

    task_class = EmbeddingTask
    roles = ("text",)
    columns = ("text", "other")
    optional_columns = ("score",)
    long_texts = ("cut",)
    lengths: ClassVar = {"source": "max_source_length", "target": "max_target_length"}
    model_settings = _POOLING
    other_starts = ENCODER_TASKS
    independent_rows = False
    soft_targets = VECTORS
    shares_tokens = False
    no_answer = ""

    def check(self, settings):
        super().check(settings)
        training = settings.training
        require(
            training.consistency == 0,
            "`training.consistency` compares probabilities, which an embedding does not have.",
            consistency=training.consistency,
        )
        require(
            training.cpu_shards in (0, 1),
            "`training.cpu_shards` must be 1: an embedding needs whole batches.",
            cpu_shards=training.cpu_shards,
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
        how = {"columns": data.columns, "encoding": data.encoding}
        if named_set(self.known_data, paths) is None and has_scores(paths, **how):
            return reported(read_scored_pairs(paths, data.skip_bad_lines, **how))
        return super().read_test(paths, data)

    def read_unlabeled(self, data):
        texts = super().read_unlabeled(data)
        return dataclasses.replace(texts, targets=texts.sources)

    def answered(self, settings, texts, teachers, answers):
        return texts  # what teachers give are vectors

    def teaching(self, settings, texts, task, teachers, answers):
        vectors, how = self._vectors("train", texts, teachers, answers), settings.distillation
        vectors = vectors @ projection(vectors, task.features)
        found = VectorTargets.of(task, vectors, how.vectors)
        return Teaching([found.targets], found.loss, how.weight)

    def taught_validation(self, settings, texts, held_out, task, teachers, answers, validation):
        if not settings.data.unlabeled or settings.data.valid is not None:
            return validation
        # Texts are their own partners: how near their vectors are to those of the teachers counts.
        train = self._vectors("train", texts, teachers, answers)
        vectors = self._vectors("validation", held_out, teachers, answers)
        vectors = vectors @ projection(train, task.features)
        found = VectorTargets.of(task, vectors, settings.distillation.vectors)
        return dataclasses.replace(validation, loss=found.validation_loss())

    def _vectors(self, part, texts, teachers, answers):
        return answers.array(part, lambda: joint_vectors(teachers, texts_by_number(texts)))

    def check_test(self, settings, texts, task):
        pass  # What is too long is cut.

    def columns_of(self, texts, roles):
        return [texts.sources, texts.targets]

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        longest = settings.data.max_source_length or self.most_tokens
        return PartnerExamples.from_pairs(texts, tokenizers["text"], longest)

    def fitting_lengths(self, settings, examples):
        longest = settings.data.max_source_length
        longest = longest or max(super().fitting_lengths(settings, examples).values())
        return dict.fromkeys(self.lengths, longest)

    def task(self, settings, texts, tokenizers, source_task):
        tokenizer, longest = tokenizers["text"], settings.data.max_source_length
        if source_task:
            backbone = source_task.backbone
            names = (*_POOLING, "truncate", "prompts", "default_prompt")
            pooling = {name: getattr(source_task, name) for name in names}
        else:
            backbone = self.model(settings, longest, tokenizer.vocabulary_size)
            pooling = {name: settings.model[name] for name in _POOLING if name in settings.model}
        return EmbeddingTask(backbone, tokenizer, max_length=longest, **pooling)

    def with_new_head(self, source_task, settings, texts):
        return EmbeddingTask(
            encoder_of(source_task),
            source_task.tokenizer,
            max_length=source_task.max_length,
            **settings.model,
        )

    def baseline(self, texts, metrics, task=None):
        return None

    def answers(self, task, texts, beams=None, progress=None):
        return vectors_of(task, texts, progress)

    def scores(self, texts, answers, metrics):
        return vector_scores(texts, answers, metrics)

    def judged(self, texts, answers):
        """Judges sources by the rank of their partner, and pairs with scores by their order.

        The error is 1 - 1 / rank, or the difference of the ranks of score and cosine as a fraction
        of the number of pairs.
        """
        if isinstance(texts, ScoredPairs):
            cosines = answers.cosines()
            apart = np.abs(ranks_of(cosines) - ranks_of(texts.scores)) / len(cosines)
            rows = zip(texts.sources, texts.targets, texts.scores, cosines, apart, strict=True)
            return [
                Judged(f"{source} / {target}", f"{score:g}", f"{cosine:.4f}", float(error))
                for source, target, score, cosine, error in rows
            ]
        sources, references = group_references(texts)
        ranks, rivals = partners_found(texts, answers)
        return [
            Judged(source, " / ".join(partners), rival if rank > 1 else partners[0], 1 - 1 / rank)
            for source, partners, rank, rival in zip(
                sources, references, ranks.tolist(), rivals, strict=True
            )
        ]

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
