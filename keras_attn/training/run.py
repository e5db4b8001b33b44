"""A whole run: texts to tokenizers, task, training, and what it measures on the test texts."""

import dataclasses
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import Examples, padding_share, plan_epoch
from keras_attn.models import get_preset
from keras_attn.tasks import LabelTask, Task, task_folder
from keras_attn.tokenizers import Tokenizer, load_tokenizer
from keras_attn.tokenizers.base import CONFIG_FILE
from keras_attn.training.loop.trainer import Trainer
from keras_attn.training.reporting.report import write_report
from keras_attn.training.reporting.run_folder import CHECKPOINTS_FOLDER, PREPARED, RunFolder
from keras_attn.training.resuming import check_changes, flat, without_automatic
from keras_attn.training.run_settings import RUN_FILE, RunSettings, kind_of_task
from keras_attn.training.task_runs import TASK_RUNS, TaskRun
from keras_attn.training.workers.cpu import resolve_parts, share_cores
from keras_attn.training.workers.strategy import make_strategy, resolve_jit, resolve_strategy
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError, require, require_one_of

RESULTS_FILE = "results.json"
TOKENIZERS_FOLDER = "tokenizers"
LOSS_METRICS = ("loss", "nll", "accuracy", "perplexity")
_SHOWN_LABELS = 10


def train(
    out: str | Path, *layers: Mapping[str, Any], resume: bool = False
) -> dict[str, float] | None:
    """Runs a training from texts to a saved task.

    The run folder gets `run.yaml` with every setting, `tokenizers/`, what `Trainer` writes, the
    trained task in `task/`, and `results.json` with what was measured on the test texts.

    Args:
        out: The run folder.
        *layers: Nested settings as in run.yaml, the later ones counting more.
        resume: Go on with the run in the folder; its own run.yaml is the first layer then. Where
            there is none yet, and the layers name data, it begins.

    Returns:
        The metrics on the test texts; None where there are none, and for workers other than the
        first.

    Raises:
        UserError: Settings, texts or the folder are not as they must be.
        TrainingInterrupted: A signal ended the training after a checkpoint.
        WorkerLost: Not all workers came, or one of them went away.
    """
    out = Path(out)
    begun = (out / RUN_FILE).is_file()
    if resume and begun:
        before = RunSettings.read(out / RUN_FILE)
        settings = RunSettings.read(out / RUN_FILE, *map(without_automatic, layers))
        check_changes(before.to_dict(), settings.to_dict())
    else:
        complete = any("data" in layer for layer in layers)
        require(complete or not resume, "There is no run to resume.", out=str(out))
        require(
            not resume or not (out / CHECKPOINTS_FOLDER).exists(),
            f"The run cannot be resumed without its {RUN_FILE}.",
            out=str(out),
        )
        settings = RunSettings.resolve(*layers)
    resume = resume and begun
    check(settings)
    settings = _resolved(settings)
    training = settings.training
    # Both before TensorFlow does anything else: the workers must have joined by then.
    share_cores(training.parts)
    strategy = make_strategy(training.strategy, training.join_seconds, training.lost_seconds)
    workers = Workers(strategy)
    try:
        return _train(out, settings, strategy, workers, resume)
    except tf.errors.OpError as error:
        if workers.workers == 1:
            raise
        raise workers.lost(error.message) from error


def _train(
    out: Path,
    settings: RunSettings,
    strategy: tf.distribute.Strategy,
    workers: Workers,
    resume: bool,
) -> dict[str, float] | None:
    chief = workers.is_chief
    (resume,) = workers.from_chief(resume)
    sections = settings.to_dict()
    del sections["data"]  # whose place may be another on each machine
    training = {f"training.{name}": value for name, value in sections.pop("training").items()}
    workers.require_equal_settings(sections | training)
    with RunFolder(out, resume, PREPARED, writes=chief):
        pass  # Found to be writable and free before the work begins.
    workers.require_shared(out)
    if chief and not resume:
        # Once more when the lengths are known; a run killed before that can be resumed too.
        settings.write(out / RUN_FILE)
    # Before any tokenizer is made: seeding destroys the resources of SentencePiece.
    keras.utils.set_random_seed(settings.training.seed)

    kind = TASK_RUNS[settings.task]
    texts = kind.read_texts(settings.data, settings.training.seed)
    with strategy.scope():
        begun_with = initial = _initial_task(settings, kind)
        if initial and kind.needs_new_head(initial, texts["train"]):
            initial = kind.with_new_head(initial, settings, texts["train"])
    if initial:
        tokenizers = initial.tokenizers
    else:
        if chief:
            folder = out / TOKENIZERS_FOLDER
            tokenizers = _tokenizers(settings, kind, texts["train"], folder, resume)
        workers.barrier()
        if not chief:
            tokenizers = _load_tokenizers(kind, out / TOKENIZERS_FOLDER)
    settings, examples = kind.examples(settings, texts["train"], tokenizers, initial)
    workers.require_equal("training data", examples.checksum)
    with strategy.scope():
        task = kind.task(settings, texts["train"], tokenizers, initial)
    if "test" in texts:
        kind.check_test(settings, texts["test"], task)
    _check_size(task, settings.training.max_parameters)
    if chief:
        _report(task, texts, examples, settings)
        for line in kind.remarks(task, texts["test"]) if "test" in texts else ():
            print(line, flush=True)
        if initial is not begun_with:
            _report_new_head(task, begun_with)

    validation = kind.validation_set(task, settings, texts["validation"])
    record = _Record(settings, out / RUN_FILE, resume)
    callbacks = [record] if chief else []
    Trainer(task, settings.training, out, callbacks).fit(examples, validation, resume=resume)
    record.require_true(workers)
    results = None
    if "test" in texts and chief:
        results = _measure_test(out, settings, kind, texts["test"])
    if chief and importlib.util.find_spec("matplotlib"):
        print(f"Report: {write_report(out)}", flush=True)
    workers.barrier()
    return results


class _Record(keras.callbacks.Callback):
    """Writes the settings once training begins with them, and not before.

    A run that is resumed begins with its first epoch: settings that do not fit it leave its own in
    place, and so does a run that is finished.
    """

    def __init__(self, settings: RunSettings, path: Path, resume: bool) -> None:
        super().__init__()
        self._settings, self._path, self._resume = settings, path, resume
        self._is_written = False

    def on_train_begin(self, logs: dict | None = None) -> None:
        if not self._resume:
            self._write()

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._write()

    def _write(self) -> None:
        if not self._is_written:
            self._settings.write(self._path)
            self._is_written = True

    def require_true(self, workers: Workers) -> None:
        """Raises a UserError where the file says something else than the settings."""
        changes = []
        if workers.is_chief and not self._is_written:
            before = flat(RunSettings.read(self._path).to_dict())
            now = flat(self._settings.to_dict())
            changes = [f"{name}={now[name]!r}" for name in now if now[name] != before.get(name)]
        (is_changed,) = workers.from_chief(bool(changes))
        if is_changed:
            raise UserError(
                "This run is finished, so new settings have no effect; "
                f"{RUN_FILE} is unchanged. Received: {', '.join(changes)}."
            )


def _measure_test(out: Path, settings: RunSettings, kind: TaskRun, texts: Any) -> dict[str, float]:
    # As whoever loads it will have it: in float32, whatever precision it was trained in.
    task = kind.task_class.load(task_folder(out))
    print(f"Measuring on {texts.name} …", flush=True)
    results = kind.measure(task, texts, settings.metrics)
    (out / RESULTS_FILE).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    names = settings.metrics or [name for name in results if name != "items"]
    shown = ", ".join(f"{name} {results[name]:.2f}" for name in names)
    print(f"On {results['items']:,} test {kind.items}: {shown}.", flush=True)
    return results


def check(settings: RunSettings) -> None:
    """Raises for settings that are wrong whatever the texts are.

    Raises:
        UserError: A setting is unknown or impossible.
    """
    require_one_of("task", settings.task, TASK_RUNS)
    if settings.preset:
        preset = get_preset(settings.preset)
        require(
            settings.task in preset.tasks,
            "`preset` must be one for this task.",
            preset=settings.preset,
            task=settings.task,
            tasks_of_preset=preset.tasks,
        )
    kind = TASK_RUNS[settings.task]
    if settings.init:
        new_head = kind_of_task(settings.init) not in (None, kind.task_class.kind)
        changeable = kind.model_settings if new_head else ()
        require(
            set(settings.model) <= set(changeable),
            "The section `model` cannot change a model that is loaded.",
            init=settings.init,
            model=settings.model,
        )
    require(
        not (settings.init and settings.tokenizers),
        "The section `tokenizers` cannot change those of a model that is loaded.",
        init=settings.init,
        tokenizers=settings.tokenizers,
    )
    kind.check(settings)
    check_metric(settings)


def check_metric(settings: RunSettings) -> None:
    """Raises unless the value that chooses the best model is one that validations give."""
    require_one_of("training.metric", settings.training.metric, [*LOSS_METRICS, *settings.metrics])


def _parameters(task: Task) -> int:
    return sum(int(np.prod(variable.shape)) for variable in task.backbone.trainable_variables)


def _check_size(task: Task, most: int | None) -> None:
    if most is not None and _parameters(task) > most:
        raise UserError(
            f"The model must have at most {most:,} parameters. Received: {_parameters(task):,}."
        )


def goal_of(settings: RunSettings) -> str:
    """`"min"` or `"max"` as told, or as the decoded metric has it; else `"auto"`."""
    training = settings.training
    if training.metric_goal == "auto" and training.metric in settings.metrics:
        return TASK_RUNS[settings.task].goal(training.metric)
    return training.metric_goal


def _resolved(settings: RunSettings) -> RunSettings:
    """Writes out what is chosen automatically, so that resuming chooses the same."""
    training = settings.training
    strategy = resolve_strategy(training.strategy)
    jit = resolve_jit(training.jit, strategy)
    parts = training.parts
    if TASK_RUNS[settings.task].independent_rows:
        parts = resolve_parts(parts, jit, strategy)
    training = dataclasses.replace(
        training,
        metric_goal=goal_of(settings),
        jit=jit,
        strategy=strategy,
        parts=max(parts, 1),
    )
    return settings.replace(training=training)


def _initial_task(settings: RunSettings, kind: TaskRun) -> Task | None:
    """The trained task to go on from, where there is one."""
    if not settings.init:
        return None
    task = Task.load(task_folder(settings.init), dtype=settings.training.precision)
    classes = (kind.task_class, *kind.other_starts)
    require(
        isinstance(task, classes),
        f"`init` must hold a task of kind {' or '.join(one.kind for one in classes)}.",
        init=settings.init,
        found=task.kind,
    )
    return task


def _tokenizers(
    settings: RunSettings, kind: TaskRun, texts: Any, folder: Path, resume: bool
) -> dict[str, Tokenizer]:
    if not kind.roles:
        return {}
    # The last one is written last: its description says that all are there.
    complete = folder / kind.roles[-1] / CONFIG_FILE
    if resume and complete.is_file():
        return _load_tokenizers(kind, folder)
    complete.unlink(missing_ok=True)
    tokenizers = kind.train_tokenizers(settings, texts)
    for role in kind.roles:
        tokenizers[role].save(folder / role)
    return tokenizers


def _load_tokenizers(kind: TaskRun, folder: Path) -> dict[str, Tokenizer]:
    return {role: load_tokenizer(folder / role) for role in kind.roles}


def _report(task: Task, texts: dict, examples: Examples, settings: RunSettings) -> None:
    for name, part in texts.items():
        print(f"{name:>10}: {len(part):,} {examples.kind}s from {part.name}")
    if examples.dropped:
        limits = {
            "source": settings.data.max_source_length,
            "text": settings.data.max_source_length,
        }
        limits["target"] = settings.data.max_target_length
        longest = " or ".join(f"{limits[side]} {side}" for side in examples.sides)
        print(
            f"  left out: {examples.dropped_long:,} {examples.kind}s longer than {longest} tokens, "
            f"{examples.dropped_empty:,} without a token"
        )
    plan = plan_epoch(
        examples,
        settings.training.batch_tokens,
        settings.training.seed,
        0,
        static_shapes=settings.training.jit == "on",
    )
    share = padding_share(examples, plan)["total"]
    padding = f", {share:.1%} of their tokens padding" if share else ""
    print(f"   batches: {len(plan):,} an epoch{padding}")
    sizes = " and ".join(
        f"{tokenizer.vocabulary_size:,} {role}" for role, tokenizer in task.tokenizers.items()
    )
    sizes = f", {sizes} tokens" if sizes else ""
    name = settings.preset or settings.init
    print(f"     model: {name}, {_parameters(task):,} parameters{sizes}", flush=True)


def _report_new_head(task: Task, begun_with: Task) -> None:
    """Says which weights are new where a run begins with a task of another kind, or labels."""
    old = {id(weight) for weight in begun_with.backbone.weights}
    new = [weight for weight in task.backbone.weights if id(weight) not in old]
    parts = list(dict.fromkeys(weight.path.partition("/")[0] for weight in new))
    trained = f"new and untrained: {', '.join(parts)}" if parts else "without weights of its own"
    kept = "encoder and vocabulary are those" if task.tokenizers else "the encoder is that"
    labels = ""
    if task.kind == begun_with.kind and isinstance(begun_with, LabelTask):
        shown = begun_with.labels[:_SHOWN_LABELS]
        more = " …" if len(begun_with.labels) > len(shown) else ""
        labels = f", whose labels are others: {', '.join(shown)}{more}"
    print(f"      head: {trained}; {kept} of the {begun_with.kind} task{labels}", flush=True)
