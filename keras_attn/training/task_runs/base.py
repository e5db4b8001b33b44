"""Base class of the parts of a run that depend on its task."""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from keras_attn.data import Examples
from keras_attn.data.reading.columns import check_columns
from keras_attn.data.reading.lines import check_encoding
from keras_attn.data.reading.rows import Mistake
from keras_attn.evaluation import get_metric
from keras_attn.models import model_class
from keras_attn.models.attention_override import attention_override
from keras_attn.tasks import DecodingSettings, Task
from keras_attn.tokenizers import Tokenizer, train_tokenizer
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.task_runs.distilled import DistilledRun
from keras_attn.training.task_runs.model_settings import check_activation, check_model_settings
from keras_attn.training.task_runs.settings_of_some import check_settings_of_some
from keras_attn.training.task_runs.vocabulary_sample import vocabulary_sample
from keras_attn.validation import require, require_one_of

MOST_TOKENS = 512
"""Most tokens that any task reads of a text where nothing else is set."""


class TaskRun(DistilledRun, abc.ABC):
    """Texts, tokenizers, examples, model and metrics of the runs of one task."""

    task_class: ClassVar[type[Task]]

    most_tokens: ClassVar[int] = 256
    """Most tokens that are read of a text where nothing else is set."""

    roles: ClassVar[tuple[str, ...]]
    """The tokenizers of the task, in the order in which they are written."""

    @property
    def tokenizer_settings(self) -> tuple[str, ...]:
        """What the section `tokenizers` may hold."""
        return self.roles

    columns: ClassVar[tuple[str, ...]] = ("text",)
    """The parts of an example, which the columns of a table are."""

    mistake: ClassVar[Mistake] = staticmethod(lambda *parts: None)
    """Describes what is wrong with the parts of an example, or returns `None`."""

    optional_columns: ClassVar[tuple[str, ...]] = ()
    """Parts that test data may have."""

    named_columns: ClassVar[tuple[str, ...]] = ()
    """Parts after the first one that examples have if `columns` names them, and only then."""

    long_texts: ClassVar[tuple[str, ...]] = ()
    """What can be done with texts that are too long, the default first; nothing if none are."""

    items: ClassVar[str] = "sources"
    """What is counted when a task is measured."""

    model_settings: ClassVar[tuple[str, ...]] = ()
    """What the section `model` may hold besides arguments of the preset's class."""

    generates: ClassVar[bool] = False
    """Whether the task has the settings `decoding`."""

    takes_metrics: ClassVar[bool] = True
    """Whether the task has the settings `metrics`."""

    beams: int | None = None
    """Width of the beam search at validations; `None` without a search."""

    has_labels: ClassVar[bool] = False
    """Whether the targets are labels, of texts or of words."""

    has_tags: ClassVar[bool] = False
    """Whether each word has a label."""

    has_several: ClassVar[bool] = False
    """Whether a text may have several labels or numbers, which `data.label_separator` is for."""

    ranks: ClassVar[bool] = False
    """Whether the data are lists of passages, and the task has the settings of these."""

    of_series: ClassVar[bool] = False
    """Whether the data are series of numbers, and the task has the settings of these."""

    independent_rows: ClassVar[bool] = True
    """Whether the loss of a row does not depend on the other rows of its batch."""

    other_starts: ClassVar[tuple[type[Task], ...]] = ()
    """Tasks whose encoder and vocabulary a run can start from."""

    lengths: ClassVar[Mapping[str, str]] = {"text": "max_source_length"}
    """The settings `data` that limit the sides of the examples."""

    @property
    def name(self) -> str:
        """Name of the task in settings."""
        return self.task_class.kind

    def check(self, settings: RunSettings) -> None:
        """Raises for settings that are wrong for any texts.

        Raises:
            UserError: A setting is unknown or impossible.
        """
        if settings.preset:
            check_model_settings(settings.preset, settings.model, self.model_settings)
        check_activation(settings.model.get("activation"))
        self.check_columns(settings.data.columns)
        check_encoding(settings.data.encoding)
        if settings.data.long_texts is not None:
            require(
                bool(self.long_texts),
                f"The task {self.name!r} has no `data.long_texts`.",
                long_texts=settings.data.long_texts,
            )
            require_one_of("data.long_texts", settings.data.long_texts, self.long_texts)
        if settings.attention is not None:
            self.attention(settings, self.most_tokens)
        for role in settings.tokenizers:
            require_one_of("tokenizers", role, self.tokenizer_settings)
        check_settings_of_some(self, settings)
        if self.generates:
            DecodingSettings().replace(**settings.decoding)

    def recognized(self, data: DataSettings) -> str:
        """The name of the task that data are for, if they cannot be for this one."""
        return self.name

    def check_columns(self, columns: Mapping[str, Any] | None) -> None:
        """Raises unless columns are given by the parts of an example."""
        check_columns(columns, (*self.columns, *self.optional_columns, *self.named_columns))

    def parts_in(self, columns: Any) -> tuple[str, ...]:
        """The parts of an example, in order, with those that columns name.

        Args:
            columns: Columns by the parts of an example; of nothing else parts are named.
        """
        named = columns if isinstance(columns, Mapping) else {}
        first, *rest = self.columns
        return (first, *(role for role in self.named_columns if role in named), *rest)

    def with_source_lengths(self, settings: RunSettings) -> RunSettings:
        """Fills in what reading the data needs to know of the task that a run starts from.

        Args:
            settings: The settings of the run.
        """
        return settings

    def read_texts(self, data: DataSettings, seed: int, whole: bool = False) -> dict[str, Any]:
        """Reads the texts: "train", "validation", and "test" if there are some.

        Args:
            data: Where they come from.
            seed: Decides what is held out if no validation texts are given.
            whole: Whether nothing is held out.

        Raises:
            UserError: A file is missing or malformed, or there is too little to hold some out.
        """
        if data.unlabeled:
            parts = {"train": self.read_unlabeled(data)}
        else:
            known = self.known(data.train, data)
            parts = dict(known) or {"train": self.read_test(data.train, data)}
        if data.valid is not None:
            parts["validation"] = self.read_test(data.valid, data)
        elif "validation" not in parts and not whole:
            parts["train"], parts["validation"] = self.hold_out(parts["train"], data, seed)
        if data.test is not None:
            parts.pop("test", None)
        if data.test:
            parts["test"] = self.read_test(data.test, data)
        return parts

    def for_long_texts(self, settings: RunSettings) -> str:
        """What is done with texts that are too long."""
        return settings.data.long_texts or self.long_texts[0]

    def known(self, paths: list[str], data: DataSettings) -> Mapping[str, Any]:
        """Returns the parts of a data set that comes with a package; none for files."""
        return {}

    @abc.abstractmethod
    def read_test(self, paths: list[str], data: DataSettings) -> Any:
        """Reads texts to measure a task on: files, or the test part of a known data set."""

    @abc.abstractmethod
    def hold_out(self, texts: Any, data: DataSettings, seed: int) -> tuple[Any, Any]:
        """Divides texts into those to train on and those to validate on."""

    def train_tokenizers(self, settings: RunSettings, texts: Any) -> dict[str, Tokenizer]:
        """Makes the tokenizers by role from the training texts."""
        return {role: self.made_tokenizer(settings, texts, [role]) for role in self.roles}

    def made_tokenizer(self, settings: RunSettings, texts: Any, roles: Sequence[str]) -> Tokenizer:
        """Makes one tokenizer for some roles from the training texts, by settings of the first.

        Raises:
            UserError: The settings have no kind.
        """
        role = roles[0]
        options = settings.tokenizers.get(role)
        require(
            bool(options) and "kind" in options,
            f"A run needs `tokenizers.{role}.kind`.",
            **{role: options},
        )
        options = dict(options)
        sample = vocabulary_sample(self.columns_of(texts, roles), settings.data.vocabulary_bytes)
        if getattr(texts, "of_two", False):
            sample = [text for pair in sample for text in pair.split(BETWEEN)]
        return train_tokenizer(options.pop("kind"), sample, **options)

    def columns_of(self, texts: Any, roles: Sequence[str]) -> list[Sequence[str]]:
        """The columns of texts that the tokenizer of some roles is made from."""
        return [texts.texts]

    @abc.abstractmethod
    def examples(
        self,
        settings: RunSettings,
        texts: Any,
        tokenizers: Mapping[str, Tokenizer],
        task: Task | None,
        held_out: bool = False,
    ) -> Examples:
        """Tokenizes texts.

        Args:
            settings: The settings of the run; lengths that are open leave room for what the texts
                have, within limits.
            texts: A part of what `read_texts` returned.
            tokenizers: The tokenizers by role.
            task: The task that reads them, if there is one already.
            held_out: Whether they are the validation texts.
        """

    def lengths_of(self, task: Any) -> dict[str, int]:
        """The longest lengths of a task to start from, by side."""
        return dict.fromkeys(self.lengths, task.max_length)

    def fitting_lengths(self, settings: RunSettings, examples: Examples) -> dict[str, int]:
        """The longest lengths by side: as set, or room for a quarter more than the examples."""
        longest = dict(zip(examples.sides, examples.lengths.max(axis=0), strict=True))
        # In steps of 8.
        room = {side: int(np.ceil(length * 1.25 / 8)) * 8 for side, length in longest.items()}
        return {
            side: getattr(settings.data, name) or min(room[side], self.most_tokens)
            for side, name in self.lengths.items()
        }

    def decoding_lengths(self, lengths: Mapping[str, int], task: Any) -> dict[str, int]:
        """The settings `decoding` that follow from lengths by side and a task to start from."""
        return {}

    @abc.abstractmethod
    def task(
        self,
        settings: RunSettings,
        texts: Any,
        tokenizers: Mapping[str, Tokenizer],
        source_task: Task | None,
    ) -> Task:
        """Makes the task that is trained, of new weights or of those of `source_task`."""

    def model(
        self, settings: RunSettings, longest: int, *arguments: Any, **options: Any
    ) -> keras.Model:
        """Makes the untrained model of the preset.

        Args:
            settings: The settings of the run.
            longest: Greatest length of a sequence in the model.
            *arguments: Arguments that no preset has.
            **options: Further ones, by their names.
        """
        sizes = {"dtype": settings.training.precision} | options | settings.model
        sizes |= self.attention(settings, longest)
        sizes = {name: sizes[name] for name in sizes if name not in self.model_settings}
        return model_class(settings.preset).from_preset(settings.preset, *arguments, **sizes)

    def attention(self, settings: RunSettings, max_length: int) -> dict[str, keras.layers.Layer]:
        """Makes the attention layers that settings name.

        Args:
            settings: Settings with a section `attention`.
            max_length: Greatest length of a sequence.

        Returns:
            Arguments of the model; none to keep the preset's own attention.

        Raises:
            UserError: There is no such mechanism, or the model has no attention to choose.
        """
        if settings.attention is None:
            return {}
        require(
            bool(settings.preset),
            "`attention` cannot be combined with `--init`: the model comes from the checkpoint.",
            init=settings.init,
        )
        return attention_override(settings.preset, settings.model, settings.attention, max_length)

    def needs_new_head(self, source_task: Task, texts: Any) -> bool:
        """Whether a task has no head that could learn from the training texts."""
        return source_task.kind != self.task_class.kind

    def with_new_head(self, source_task: Task, settings: RunSettings, texts: Any) -> Task:
        """Puts an untrained head on the encoder of a task that needs one.

        Args:
            source_task: The task.
            settings: Settings with a section `model` for the head.
            texts: The training texts.

        Returns:
            A task of this class, with the other one's tokenizers and its longest length.
        """
        raise NotImplementedError

    def validation_set(self, task: Task, settings: RunSettings, texts: Any) -> ValidationSet:
        """Makes the validation set of a run."""
        return ValidationSet(self.examples(settings, texts, task.tokenizers, task, True))

    def check_test(self, settings: RunSettings, texts: Any, task: Task) -> None:
        """Raises before the training for mistakes that the test after it would find."""
        require(
            not self.takes_metrics or bool(settings.metrics),
            "Test texts need at least one of `metrics`.",
            metrics=settings.metrics,
        )

    def count_cut(self, texts: Any, task: Task) -> int:
        """The number of texts that a task reads the beginning of."""
        return 0

    def measure(
        self,
        task: Any,
        texts: Any,
        metrics: Sequence[str],
        beams: int | None = None,
        perplexity: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Measures a task, exported or not, on texts.

        Args:
            task: The task.
            texts: Texts from `read_test`.
            metrics: Names of metrics.
            beams: Width of the beam search; the task's own by default.
            perplexity: Whether to add the perplexity.
            progress: Called with the number of texts done after each batch.

        Returns:
            The metrics by name, and "items", the number of texts.
        """
        self.check_options(beams, perplexity)
        results = self.scores(texts, self.answers(task, texts, beams, progress), metrics)
        return results | self.perplexity(task, texts) if perplexity else results

    def check_options(self, beams: int | None, perplexity: bool) -> None:
        """Raises for options of tasks that generate texts, if this is another one."""
        require(
            beams is None and not perplexity,
            f"The task {self.name!r} has no beams and no perplexity.",
            beams=beams,
            perplexity=perplexity,
        )

    def perplexity(self, task: Any, texts: Any) -> dict[str, float]:
        """The perplexity of targets, by its name."""
        return {}

    @abc.abstractmethod
    def answers(
        self,
        task: Any,
        texts: Any,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Any:
        """Computes what a task, exported or not, answers to texts (see `measure`)."""

    @abc.abstractmethod
    def scores(self, texts: Any, answers: Any, metrics: Sequence[str]) -> dict[str, Any]:
        """Measures answers.

        Args:
            texts: Texts from `read_test`.
            answers: What `answers` returned for them.
            metrics: Names of metrics.

        Returns:
            The metrics by name, and "items", the number of texts.
        """

    @abc.abstractmethod
    def judged(self, texts: Any, answers: Any) -> list[Judged]:
        """Judges each answer (see `scores`)."""

    def first(self, texts: Any, examples: Examples, most: int | None) -> Any:
        """The first different texts that examples were made of.

        Args:
            texts: Texts from `read_texts`.
            examples: What `examples` made of them: without those that are too long, for instance.
            most: Most different texts; all for `None`.
        """
        return texts

    def held_out_inputs(self, task: Any, texts: Any) -> Sequence[str | bytes]:
        """A few inputs from held-out texts; none if samples.json of the run has the texts.

        Args:
            task: The task, which reads them all.
            texts: Texts from `read_texts`.
        """
        return []

    def charts(self, task: Any, texts: Any, answers: Any) -> dict[str, Any]:
        """What the report of a run draws of answers: "counts" of labels, "calibration"."""
        return {}

    def baseline(self, texts: Any, metrics: Sequence[str], task: Any = None) -> Baseline | None:
        """Measures an answer without any model; `None` if answers are neither right nor wrong.

        Args:
            texts: Texts from `read_texts`.
            metrics: Names of metrics.
            task: The trained task, for what data alone do not say.
        """
        return None

    def described(self, texts: Any) -> list[str]:
        """Lines about the training texts that users need to see before a training."""
        return []

    def doubts(self, texts: Any, tokenizers: Mapping[str, Any]) -> list[str]:
        """What is odd about the training texts as they are tokenized, a line each."""
        return []

    def remarks(self, task: Any, texts: Any) -> list[str]:
        """Lines that readers of a task's metrics on texts need to know.

        Args:
            task: The task.
            texts: Texts from `read_test`.
        """
        return []

    def as_trained(self, task: Any, data: DataSettings) -> DataSettings:
        """Settings by which data to measure a task on are read: a task may know some that are open.

        Args:
            task: The task, exported or not.
            data: Where the data come from.
        """
        return data

    def shown_metrics(self, results: Mapping[str, Any], metrics: Sequence[str]) -> list[str]:
        """Names of the results of a test to print: the metrics of a run, or all without any."""
        return list(metrics) or [name for name in results if name != "items"]

    def default_metrics(self, data: Sequence[str]) -> list[str]:
        """The metrics where neither user nor run names any."""
        return []

    def metrics_of(
        self, texts: Any, data: Sequence[str], chosen: Sequence[str] | None
    ) -> Sequence[str]:
        """The metrics where the user names none.

        Args:
            texts: Texts from `read_test`.
            data: Where they come from.
            chosen: The metrics of the task's run, if there are some.
        """
        return chosen or self.default_metrics(data)

    def goal(self, metric: str) -> str:
        """Whether a metric is better when it is greater, `"max"`, or not, `"min"`.

        Raises:
            UserError: There is no such metric for the task.
        """
        return get_metric(metric).direction

    def count(self, texts: Any) -> int:
        """The number of texts that `measure` counts in its progress."""
        return len(texts)


def with_lengths(settings: RunSettings, names: Mapping[str, str], lengths: Mapping) -> RunSettings:
    """Fills in the settings `data` that limit lengths and are open.

    Args:
        settings: Settings.
        names: Names of the settings by side.
        lengths: Lengths by side.
    """
    found = {name: lengths[side] for side, name in names.items() if side in lengths}
    data = {name: getattr(settings.data, name) or length for name, length in found.items()}
    return settings.replace(data=dataclasses.replace(settings.data, **data))
