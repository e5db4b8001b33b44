"""The parts of a run that depend on the kind of its task."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from keras_attn.data import Examples
from keras_attn.evaluation import get_metric
from keras_attn.models.attention_override import attention_override
from keras_attn.tasks import Task
from keras_attn.tokenizers import Tokenizer, train_tokenizer
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.task_runs.model_settings import check_activation, check_model_settings
from keras_attn.validation import require

MOST_TOKENS = 256


class TaskRun(abc.ABC):
    """Texts, tokenizers, examples, task and measures of the runs of one kind of task."""

    task_class: ClassVar[type[Task]]

    roles: ClassVar[tuple[str, ...]]
    """The tokenizers of a task, in the order in which they are written."""

    items: ClassVar[str] = "sources"
    """What is counted when a task is measured."""

    model_settings: ClassVar[tuple[str, ...]] = ()
    """What the section `model` may hold besides arguments of the preset's class."""

    independent_rows: ClassVar[bool] = True
    """Whether the loss of a row does not depend on what else is in its batch."""

    other_starts: ClassVar[tuple[type[Task], ...]] = ()
    """Tasks of other kinds whose encoder and vocabulary a run can begin with."""

    @property
    def name(self) -> str:
        """What settings call it: as its task, where that is trained in one way alone."""
        return self.task_class.kind

    def check(self, settings: RunSettings) -> None:
        """Raises for settings that are wrong whatever the texts are.

        Raises:
            UserError: A setting is unknown or impossible.
        """
        if settings.preset:
            check_model_settings(settings.preset, settings.model, self.model_settings)
        check_activation(settings.model.get("activation"))
        if settings.attention is not None:
            self.attention(settings, MOST_TOKENS)

    def attention(self, settings: RunSettings, max_length: int) -> dict[str, keras.layers.Layer]:
        """Makes the attention layers that settings name.

        Args:
            settings: Whose section `attention` counts.
            max_length: Greatest length of a sequence.

        Returns:
            Arguments of the model; none where the preset's own attention is to stay.

        Raises:
            UserError: There is no such mechanism, or the model has no attention to choose.
        """
        if settings.attention is None:
            return {}
        require(
            bool(settings.preset),
            "The section `attention` cannot change a model that is loaded.",
            init=settings.init,
        )
        return attention_override(settings.preset, settings.model, settings.attention, max_length)

    @abc.abstractmethod
    def read_texts(self, data: DataSettings, seed: int) -> dict[str, Any]:
        """Reads the texts: "train", "validation", and "test" where there are some.

        Args:
            data: Where they come from.
            seed: Decides what is held out where no validation texts are given.
        """

    @abc.abstractmethod
    def read_test(self, paths: list[str], data: DataSettings) -> Any:
        """Reads texts to measure a task on."""

    @abc.abstractmethod
    def train_tokenizers(self, settings: RunSettings, texts: Any) -> dict[str, Tokenizer]:
        """Makes the tokenizers by role from the training texts."""

    @abc.abstractmethod
    def examples(
        self,
        settings: RunSettings,
        texts: Any,
        tokenizers: Mapping[str, Tokenizer],
        initial: Task | None,
    ) -> tuple[RunSettings, Examples]:
        """Tokenises the training texts, and sets the longest lengths where none are given."""

    @abc.abstractmethod
    def task(
        self,
        settings: RunSettings,
        texts: Any,
        tokenizers: Mapping[str, Tokenizer],
        initial: Task | None,
    ) -> Task:
        """Makes the task that is trained, of new weights or of those of `initial`."""

    def needs_new_head(self, initial: Task, texts: Any) -> bool:
        """Whether a task has no head that could learn from the training texts."""
        return not isinstance(initial, self.task_class)

    def with_new_head(self, initial: Task, settings: RunSettings, texts: Any) -> Task:
        """Puts an untrained head on the encoder of a task that needs one.

        Args:
            initial: The task.
            settings: Whose section `model` has the head's settings.
            texts: The training texts.

        Returns:
            A task of this kind, with the other one's tokenizers and its longest length.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def validation_set(self, task: Task, settings: RunSettings, texts: Any) -> ValidationSet:
        """What the run is judged by."""

    @abc.abstractmethod
    def check_test(self, settings: RunSettings, texts: Any, task: Task) -> None:
        """Raises before the training for what would be found to be wrong with the test after it."""

    @abc.abstractmethod
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
            task: What predicts.
            texts: What `read_test` gave.
            metrics: Names of metrics.
            beams: Width of the beam search; the task's own by default.
            perplexity: Whether to add the perplexity.
            progress: Called with the number of texts done after each batch.

        Returns:
            The metrics by name, and "items", the number of texts.
        """

    def remarks(self, task: Any, texts: Any) -> list[str]:
        """What whoever reads the measures of a task on texts must know, in lines.

        Args:
            task: What predicts.
            texts: What `read_test` gave.
        """
        return []

    def default_metrics(self, data: Sequence[str]) -> list[str]:
        """What texts are measured by where neither user nor run says it."""
        return []

    def metrics_of(
        self, texts: Any, data: Sequence[str], chosen: Sequence[str] | None
    ) -> Sequence[str]:
        """What texts are measured by where the user does not say it.

        Args:
            texts: What `read_test` gave.
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
        """How many texts `measure` counts in its progress."""
        return len(texts)


def fitting_lengths(limits: Mapping[str, int | None], examples: Examples) -> dict[str, int]:
    """The longest lengths by side: as given, or room for a quarter more than there is."""
    longest = dict(zip(examples.sides, examples.lengths.max(axis=0), strict=True))
    # In steps of 8.
    room = {side: int(np.ceil(length * 1.25 / 8)) * 8 for side, length in longest.items()}
    return {side: limit or min(room[side], MOST_TOKENS) for side, limit in limits.items()}


def made_tokenizer(options: Mapping[str, Any] | None, texts: list[str], role: str) -> Tokenizer:
    """Trains a tokenizer as its settings say.

    Raises:
        UserError: The settings have no kind.
    """
    require(
        bool(options) and "kind" in options,
        f"A run needs `tokenizers.{role}.kind`.",
        **{role: options},
    )
    options = dict(options)
    return train_tokenizer(options.pop("kind"), texts, **options)
