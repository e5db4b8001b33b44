"""Base class of runs that train an encoder with a head for whole inputs."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np

from keras_attn.data import LabelledExamples, Pairs
from keras_attn.data.text_pairs import read_text_pairs
from keras_attn.layers.head_transform import HeadTransform
from keras_attn.models import SequenceClassifier, get_preset, model_class
from keras_attn.tasks import Task
from keras_attn.tasks.text_inputs import has_segments
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import reported
from keras_attn.training.task_runs.base import MOST_TOKENS
from keras_attn.training.task_runs.encoders import (
    ENCODER_TASKS,
    encoder_of,
    transform_of,
    with_pooler,
)
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.validation import require, require_one_of


class HeadRun(PairsRun):
    """Trains an encoder and a head on texts with labels or numbers, the targets of the pairs."""

    roles = ("text",)
    most_tokens = MOST_TOKENS
    long_texts = ("cut", "drop", "error")
    head_class: ClassVar[type[keras.Model]] = SequenceClassifier
    model_settings = ("pooling",)
    other_starts = ENCODER_TASKS
    alike = ("with_start", "pairs")
    no_answer = ""

    known_metrics: ClassVar[tuple[str, ...]]
    """Names of the task's metrics."""

    def check(self, settings):
        super().check(settings)
        for name in settings.metrics:
            require_one_of("metrics", name, self.known_metrics)

    def goal(self, metric):
        require_one_of("metric", metric, self.known_metrics)
        return "max"

    def metrics_of(self, texts, data, chosen):
        return chosen or self.default_metrics(data)

    def columns_of(self, texts, roles):
        return [texts.sources]

    def read_files(self, paths, data):
        if "other" not in self.parts_in(data.columns):
            return super().read_files(paths, data)
        how = (data.columns, data.skip_bad_lines, data.encoding, data.kept_in)
        return reported(read_text_pairs(paths, *how, role=self.columns[1]))

    @abc.abstractmethod
    def head_of(self, texts: Pairs, task: Any) -> tuple:
        """Arguments of the task's class that say what the columns of its model are.

        Args:
            texts: Training texts.
            task: The task whose columns they are, if there is one.

        Returns:
            A list with an entry for each column, and what else the class takes after it.
        """

    @abc.abstractmethod
    def targets(self, texts: Pairs, task: Any, held_out: bool) -> np.ndarray:
        """The labels or numbers of texts, for `LabelledExamples`.

        Args:
            texts: Texts.
            task: The task, if there is one already.
            held_out: Whether they are the validation texts.
        """

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return LabelledExamples.from_targets(
            texts,
            tokenizers["text"],
            self.targets(texts, task, held_out),
            settings.data.max_source_length or self.most_tokens,
            with_start=bool(task) and task.with_start,
            long_texts=self.for_long_texts(settings),
            **(self.pair_format(settings, task) if texts.of_two else {}),
        )

    def pair_format(self, settings: RunSettings, task: Any) -> dict[str, Any]:
        """How pairs of texts are read: as before by a task that reads pairs, or as it may be.

        Args:
            settings: Settings of a run.
            task: The task, if there is one already.

        Returns:
            Arguments of `TextInputs.read_pairs` by name.
        """
        if task is not None:
            return self.pairs_after(task, task.backbone, task.tokenizers["text"])
        model = get_preset(settings.preset).config | settings.model
        takes_segments = "segment_ids" in model_class(settings.preset).optional_inputs
        return {"ends_between": 1, "segments": takes_segments and model.get("num_segments", 2) > 1}

    def pairs_after(
        self, source_task: Task | None, model: keras.Model, tokenizer: Tokenizer
    ) -> dict[str, Any]:
        """How pairs of texts are read in a task that another one begins.

        Args:
            source_task: The other task, which may read pairs itself.
            model: The model of the new one.
            tokenizer: The tokenizer of both.
        """
        known: Any = source_task
        if getattr(source_task, "pairs", False):
            return {"ends_between": known.ends_between, "segments": known.segments}
        between = max(getattr(source_task, "ends_between", 1), tokenizer.ends_between)
        return {"ends_between": between, "segments": has_segments(model)}

    def task(self, settings, texts, tokenizers, source_task):
        if source_task is None:
            return self.student(settings, texts, tokenizers, None)
        head = self.head_of(texts, source_task)
        task = self.made(source_task.backbone, tokenizers, head, settings, source_task)
        return self.read_as(task, settings, texts, source_task)

    def student(self, settings, texts, tokenizers, teacher):
        head, options = self.head_of(texts, teacher), self.head_in(settings.model)
        model = self.on_top_of(self.encoder(settings, tokenizers), head, options)
        student = self.made(model, tokenizers, head, settings, teacher)
        return self.read_as(student, settings, texts, teacher)

    def read_as(self, task: Any, settings: RunSettings, texts: Pairs, reader: Task | None) -> Any:
        """Makes a task read one text or two, as its training texts are and as another task does."""
        if "pairs" in task._saved:
            how = self.pair_format(settings, reader) if texts.of_two else {}
            task.read_pairs(texts.of_two, **{"ends_between": task.ends_between} | how)
        return task

    def encoder(self, settings: RunSettings, tokenizers: Mapping[str, Tokenizer]) -> keras.Model:
        """Makes the untrained encoder of a preset."""
        vocabulary_size = tokenizers["text"].vocabulary_size
        return self.model(settings, settings.data.max_source_length, vocabulary_size)

    def made(
        self,
        model: keras.Model,
        tokenizers: Mapping[str, Tokenizer],
        head: tuple,
        settings: RunSettings,
        source_task: Task | None,
    ) -> Any:
        """Makes the task of a model, which may begin with that of `source_task`."""
        # The start token is before texts as the encoder knows them: those of most tasks have it.
        with_start = source_task is not None and getattr(source_task, "with_start", True)
        longest, truncate = self.longest(settings, source_task)
        options = {"max_length": longest, "with_start": with_start, "truncate": truncate}
        task = self.task_class(model, tokenizers["text"], *head, **options)
        for name, value in self.pairs_after(source_task, model, tokenizers["text"]).items():
            setattr(task, name, value)
        return task

    def longest(self, settings: RunSettings, source_task: Task | None) -> tuple[int, bool]:
        """Most tokens of a text of the task, and whether longer ones are truncated."""
        longest = settings.data.max_source_length or self.lengths_of(source_task).get("text")
        return longest, self.for_long_texts(settings) == "cut"

    def with_new_head(self, source_task, settings, texts):
        head, options = self.head_of(texts, None), settings.model
        if source_task.kind == self.task_class.kind:
            options = self.head_in(source_task.backbone.get_config())
        encoder, transform = encoder_of(source_task), transform_of(source_task)
        model = self.on_top_of(encoder, head, options, transform)
        return self.made(model, source_task.tokenizers, head, settings, source_task)

    def head_in(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a head among others."""
        return {name: sizes[name] for name in self.model_settings if name in sizes}

    def on_top_of(
        self,
        encoder: keras.Model,
        head: tuple,
        options: Mapping[str, Any],
        transform: HeadTransform | None = None,
    ) -> keras.Model:
        """Puts an untrained head on an encoder, with as much dropout.

        Args:
            encoder: The encoder. Without a pooler it gets an untrained one if the head needs it.
            head: What `head_of` returns.
            options: Settings of the head.
            transform: What the head begins with, which has been trained.
        """
        if options.get("pooling") == "pooler" and transform is None:
            encoder = with_pooler(encoder)
        dropout = encoder.get_config().get("dropout", 0.0)
        if transform is None:
            return self.head_class(encoder, len(head[0]), dropout=dropout, **options)
        same = HeadTransform.from_config(transform.get_config())
        options = {**options, "transform": same}
        model = self.head_class(encoder, len(head[0]), dropout=dropout, **options)
        model.get_layer("transform").set_weights(transform.get_weights())
        return model

    def source_lengths(self, task, sources):
        return task.token_counts(sources)

    def require_read(self, task: Any, texts: Pairs) -> None:
        """Raises unless a task reads as many texts as there are in a row."""
        of_two = getattr(task, "pairs", False)
        require(
            of_two == texts.of_two,
            "The task reads pairs of texts: name the column of the second text, `other`."
            if of_two
            else "The task reads one text: there is no column `other`.",
            data=texts.name,
        )

    def count_cut(self, texts, task):
        self.require_read(task, texts)
        return super().count_cut(texts, task)

    def answers(self, task, texts, beams=None, progress=None):
        self.require_read(task, texts)
        return super().answers(task, texts, beams, progress)

    def check_teacher(self, task, teacher):
        super().check_teacher(task, teacher)
        if getattr(task, "pairs", False):
            self.require_same(task, teacher, "ends_between", "segments")

    def refuse_consistency(self, settings: RunSettings) -> None:
        """Raises for R-Drop, which needs probabilities of labels that exclude each other."""
        require(
            settings.training.consistency == 0,
            f"The task {self.name!r} has no `training.consistency`.",
            consistency=settings.training.consistency,
        )
