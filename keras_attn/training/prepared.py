"""Preparation of a run: from settings to texts, tokenizers, examples and a task."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keras

from keras_attn.data import Examples
from keras_attn.memory import return_free_memory
from keras_attn.tasks import Task, task_folder
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.answers import RunAnswers
from keras_attn.training.by_amount import follow_amount
from keras_attn.training.loop.teaching import Teaching
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.reporting.description import count_parameters
from keras_attn.training.reporting.run_folder import TokenizerMaker
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import MAX_DROPPED, require_few_malformed
from keras_attn.training.task_runs import TASK_RUNS, TaskRun
from keras_attn.training.task_runs.base import with_lengths
from keras_attn.training.teachers import check_tokenizers, load_teachers, with_checksums
from keras_attn.validation import UserError, require

Scope = Callable[[], contextlib.AbstractContextManager]


@dataclass(frozen=True)
class RunData:
    """The data of a run, before its task is built.

    Attributes:
        settings: The settings of the run, complete.
        texts: The texts by part: "train", "validation", and "test" if there is one.
        tokenizers: The tokenizers by role.
        examples: The tokenized training texts.
        source_task: The task that the run starts from, with a new head if it needs one, or `None`.
        loaded_task: That task as it was loaded.
        applied_rules: Settings that follow from the amount of data, by condition.
        teachers: The teachers of the soft targets.
        answers: Keeps what teachers answer.
    """

    settings: RunSettings
    texts: Mapping[str, Any]
    tokenizers: Mapping[str, Tokenizer]
    examples: Examples
    source_task: Task | None = None
    loaded_task: Task | None = None
    applied_rules: Mapping[str, Any] = field(default_factory=dict)
    teachers: Sequence[Task] = ()
    answers: RunAnswers = field(default_factory=RunAnswers)


@dataclass(frozen=True)
class PreparedRun:
    """A run that can be trained and measured.

    Attributes:
        settings: The settings of the run, complete.
        task: The task to train.
        validation: The validation set, or `None`.
        held_out: The texts of the validation set, or `None`.
        test: The test texts, or `None`.
        teaching: The soft targets of teachers, or `None`.
    """

    settings: RunSettings
    task: Task
    validation: ValidationSet | None
    held_out: Any
    test: Any
    teaching: Teaching | None = None


def read_data(
    settings: RunSettings,
    keep: Callable[[TokenizerMaker], dict[str, Tokenizer]] = lambda make: make(),
    scope: Scope = contextlib.nullcontext,
    ready: RunData | None = None,
    whole: bool = False,
    cache: Path | None = None,
    answers: RunAnswers | None = None,
) -> RunData:
    """Reads and tokenizes the texts of a run, and fills in the lengths that are open.

    Args:
        settings: Settings of a run, checked.
        keep: Gets a function that makes the tokenizers, and returns them; a run folder keeps them.
        scope: Makes the scope of the strategy that models are built under.
        ready: Data of an earlier call, whose examples are used again if they are the same.
        whole: Whether no texts are held out for validation.
        cache: Folder in which texts and tokens are kept if settings name none; by default they are
            in memory.
        answers: Keeps what teachers answer; by default in memory.

    Returns:
        The data, with complete settings.

    Raises:
        UserError: A file is missing or malformed, or settings do not fit the texts.
    """
    run = TASK_RUNS[settings.task]
    # Before any tokenizer is made: seeding destroys the resources of SentencePiece.
    keras.utils.set_random_seed(settings.training.seed)
    settings = run.with_source_lengths(settings)
    places = settings.data
    if cache is not None and places.cache is None:
        places = replace(places, cache=str(cache))
    texts = run.read_texts(places, settings.training.seed, whole)
    _check_malformed(settings, texts)
    with scope():
        teachers = load_teachers(settings, run.task_class.kind)
    settings = with_checksums(settings, teachers)
    answers = answers or RunAnswers()
    texts = run.answered(settings, texts, teachers, answers)
    train = texts["train"]
    settings, applied = follow_amount(settings, run, train)
    with scope():
        loaded = source = _source_task(settings, run)
        if source and run.needs_new_head(source, train):
            source = run.with_new_head(source, settings, train)
    soft = teachers if teachers and settings.distillation.is_soft else []
    shared = soft if run.shares_tokens else []
    if source:
        tokenizers = source.tokenizers
        settings = with_lengths(settings, run.lengths, run.lengths_of(source))
        check_tokenizers(tokenizers, shared)
    elif shared:
        run.check_texts_of_student(train, shared[0])
        tokenizers = keep(lambda: dict(shared[0].tokenizers))
        check_tokenizers(tokenizers, shared)
    else:
        tokenizers = keep(lambda: run.train_tokenizers(settings, train))
    if ready is not None and _are_same(ready, settings, train):
        examples = ready.examples
    else:
        reader = source or (shared[0] if shared else None)
        examples = run.examples(settings, train, tokenizers, reader)
    return_free_memory()  # of the training of a vocabulary, and of tokenizing
    _check_losses(settings, texts, examples)
    settings = _complete(settings, run, examples, source)
    taught = (soft, answers)
    return RunData(settings, texts, tokenizers, examples, source, loaded, applied, *taught)


def prepare(data: RunData, scope: Scope = contextlib.nullcontext) -> PreparedRun:
    """Builds the task of a run and its validation set.

    Args:
        data: The data of the run.
        scope: Makes the scope of the strategy that models are built under.

    Returns:
        The prepared run.

    Raises:
        UserError: The model is too large, or a validation or test text does not fit it.
    """
    settings, texts = data.settings, data.texts
    run = TASK_RUNS[settings.task]
    with scope():
        of = (settings, texts["train"], data.tokenizers)
        if data.teachers and data.source_task is None:
            task = run.student(*of, data.teachers[0])
        else:
            task = run.task(*of, data.source_task)
        taught_by = (task, data.teachers, data.answers)
        teaching = run.teaching(settings, texts["train"], *taught_by) if data.teachers else None
    if "test" in texts:
        run.check_test(settings, texts["test"], task)
    most = settings.training.max_parameters
    parameters = count_parameters(task.backbone.trainable_variables)
    if most is not None and parameters > most:
        raise UserError(
            f"The model must have at most {most:,} parameters. Received: {parameters:,}."
        )
    validation, held_out = None, texts.get("validation")
    if held_out is not None:
        validation = run.validation_set(task, settings, held_out)
        if teaching:
            with scope():
                sides = (texts["train"], held_out)
                validation = run.taught_validation(settings, *sides, *taught_by, validation)
    return PreparedRun(settings, task, validation, held_out, texts.get("test"), teaching)


def _source_task(settings: RunSettings, run: TaskRun) -> Task | None:
    """The trained task to start from, if settings name one."""
    if not settings.init:
        return None
    task = Task.load(task_folder(settings.init), dtype=settings.training.precision)
    task.preset = None  # to be trained
    classes = tuple(dict.fromkeys((run.task_class, *run.other_starts)))
    require(
        isinstance(task, classes),
        f"`init` must hold a task of kind {' or '.join(one.kind for one in classes)}.",
        init=settings.init,
        found=task.kind,
    )
    return task


def _complete(
    settings: RunSettings, run: TaskRun, examples: Examples, source_task: Task | None
) -> RunSettings:
    """Fills in the lengths that are still open, by the training examples."""
    lengths = run.fitting_lengths(settings, examples)
    open_lengths = run.decoding_lengths(lengths, source_task)
    # In the order in which run.yaml is read again.
    decoding = settings.decoding | open_lengths | settings.decoding
    return with_lengths(settings, run.lengths, lengths).replace(decoding=decoding)


def _held_out(settings: RunSettings, texts: Mapping[str, Any]) -> int:
    """Number of rows that were read with those to train on, and are for the validation."""
    return len(texts.get("validation") or ()) if settings.data.valid is None else 0


def _check_malformed(settings: RunSettings, texts: Mapping[str, Any]) -> None:
    """Raises if more of the rows of a part of the data are malformed than settings allow."""
    most, held_out = settings.data.max_dropped, _held_out(settings, texts)
    for name, part in texts.items():
        require_few_malformed(part, most, MAX_DROPPED, held_out if name == "train" else 0)


def _check_losses(settings: RunSettings, texts: Mapping[str, Any], examples: Examples) -> None:
    """Raises if more of the training data would be left out than settings allow."""
    train, most = texts["train"], settings.data.max_dropped
    malformed = getattr(train, "skipped", 0)
    rows = len(train) + malformed + _held_out(settings, texts)
    lost = malformed / rows + examples.dropped / len(train)
    if not examples.dropped or lost <= most:
        return
    counts = {
        f"of {len(train):,} rows {{:,}} have no token": examples.dropped_empty,
        f"of {len(train):,} rows {{:,}} are too long": examples.dropped_long,
        f"of {rows:,} rows {{:,}} are malformed": malformed,
    }
    shown = ", ".join(text.format(count) for text, count in counts.items() if count)
    longer = (
        "Set a larger `data.max_source_length` or `data.max_target_length`, a tokenizer of larger "
        "units (`tokenizers`), or"
    )
    raise UserError(
        f"{examples.name}: {shown}, which is more than `data.max_dropped` allows ({most:.0%}). "
        f"{longer if examples.dropped_long else 'Mend them, or set'} a larger "
        f"`data.max_dropped` ({MAX_DROPPED}{math.ceil(100 * lost) / 100:g})."
    )


def _are_same(ready: RunData, settings: RunSettings, texts: Any) -> bool:
    """Whether tokenizing texts by settings gives the examples that are ready."""

    def of(settings: RunSettings, texts: Any) -> tuple:
        places = replace(settings.data, train=[], valid=None, test=None, cache=None)
        return settings.task, settings.training.seed, places, replace(texts, name="")

    return of(ready.settings, ready.texts["train"]) == of(settings, texts)
