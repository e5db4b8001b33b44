"""Complete and checked settings of a run, from nested layers or from a run to resume."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attn.models import get_preset
from keras_attn.training.by_amount import with_each_rule
from keras_attn.training.reporting.run_folder import CHECKPOINTS_FOLDER
from keras_attn.training.run_settings import RUN_FILE, DataSettings, RunSettings, flat, kind_of_task
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.training.workers.strategy import resolve_jit, resolve_shards, resolve_strategy
from keras_attn.validation import UserError, require, require_one_of

# Settings that stay as they were when a run is resumed, besides those of other sections.
_FIXED = (
    *("batch_tokens", "class_weights", "ema_decay", "freeze", "jit"),
    *("metric", "metric_goal", "optimizer", "seed"),
)
MAY_CHANGE = frozenset(
    # Files may have moved; the checksum shows whether they have other training texts.
    [f"data.{name}" for name in ("train", "valid", "test", "cache")]
    + ["distillation.teachers"]  # they may have moved too, and have checksums
    + [f"training.{f.name}" for f in dataclasses.fields(TrainingSettings) if f.name not in _FIXED]
)
_AUTOMATIC = (None, "auto")


def settings_of_run(
    out: Path, layers: tuple[Mapping[str, Any], ...], resume: bool
) -> tuple[RunSettings, bool]:
    """Resolves and checks the settings of a run, and replaces "auto" by what is chosen here.

    Args:
        out: The run folder.
        layers: Nested settings as in run.yaml, later ones override earlier ones.
        resume: Whether to continue the run in the folder.

    Returns:
        The settings, in which only lengths may be open, and whether there is a run to resume.

    Raises:
        UserError: A setting is unknown or impossible, or a resumed run cannot change it.
    """
    path = out / RUN_FILE
    is_resumed = resume and path.is_file()
    if is_resumed:
        before = RunSettings.read(path)
        settings = RunSettings.read(path, *map(without_automatic, layers))
        check_changes(before.to_dict(), settings.to_dict())
    else:
        complete = any("data" in layer for layer in layers)
        require(complete or not resume, "There is no run to resume.", out=str(out))
        require(
            not resume or not (out / CHECKPOINTS_FOLDER).exists(),
            f"The run cannot be resumed without its {RUN_FILE}.",
            out=str(out),
        )
        settings = resolved(*layers)
    check(settings)
    return _with_choices(settings), is_resumed


def resolved(*layers: Mapping[str, Any]) -> RunSettings:
    """Resolves settings, of the task that the data are for if that is another one.

    Args:
        *layers: Nested settings as in run.yaml, later ones override earlier ones.

    Raises:
        UserError: A setting is unknown or impossible, or a file of the data is missing.
    """
    settings = RunSettings.resolve(*layers)
    require_one_of("task", settings.task, TASK_RUNS)
    data = settings.data
    name = settings.task if data.unlabeled else TASK_RUNS[settings.task].recognized(data)
    if name == settings.task:
        return settings
    print(f"The texts have several labels each: the task is {name}.", flush=True)
    return RunSettings.resolve(*layers, {"task": name})


def require_fitting_task(task: str, data: DataSettings) -> None:
    """Raises if data are for another task."""
    other = task if data.unlabeled else TASK_RUNS[task].recognized(data)
    require(
        other == task,
        f"The texts have several labels each, which are for the task {other}.",
        task=task,
    )


def check(settings: RunSettings) -> None:
    """Raises for settings that are wrong for any texts.

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
    run = TASK_RUNS[settings.task]
    if settings.init:
        has_new_head = kind_of_task(settings.init) not in (None, run.task_class.kind)
        require(
            set(settings.model) <= set(run.model_settings if has_new_head else ()),
            "`model.*` settings cannot be combined with `--init`: the model comes from the "
            "checkpoint.",
            init=settings.init,
            model=settings.model,
        )
    require(
        not (settings.init and settings.tokenizers),
        "`tokenizers.*` settings cannot be combined with `--init`: the tokenizers come from the "
        "checkpoint.",
        init=settings.init,
        tokenizers=settings.tokenizers,
    )
    run.check(settings)
    check_metric(settings)
    for fitted in with_each_rule(settings):
        check(fitted)


def check_metric(settings: RunSettings) -> None:
    """Raises unless the metric that chooses the best model is one that validations measure."""
    values = TASK_RUNS[settings.task].task_class.loss_values
    require_one_of("training.metric", settings.training.metric, [*values, *settings.metrics])


def goal_of(settings: RunSettings) -> str:
    """`"min"` or `"max"` as set, or as the decoded metric requires; else `"auto"`."""
    training = settings.training
    if training.metric_goal == "auto" and training.metric in settings.metrics:
        return TASK_RUNS[settings.task].goal(training.metric)
    return training.metric_goal


def without_automatic(layer: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Leaves out the settings of a layer that are automatic, since the run has chosen them.

    Args:
        layer: Nested settings.
        prefix: Names of the sections that they are in.

    Returns:
        Nested settings.
    """
    kept = {}
    for name, value in layer.items():
        place = f"{prefix}{name}"
        if isinstance(value, Mapping):
            kept[name] = without_automatic(value, f"{place}.")
        elif value not in _AUTOMATIC or place in MAY_CHANGE:
            kept[name] = value
    return kept


def check_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises if a run would be resumed with other settings than it can have.

    Args:
        before: The run's settings, nested.
        now: Those that it would be resumed with.

    Raises:
        UserError: Names the settings, with their old and new values.
    """
    before, now = flat(before), flat(now)
    changed = [
        f"{name}={now.get(name)!r}, which is {before.get(name)!r} in {RUN_FILE}"
        for name in sorted({*before, *now} - MAY_CHANGE)
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise UserError(
            "A run that is resumed keeps these settings; start a new run to change them. "
            f"Received: {', '.join(changed)}."
        )


def _with_choices(settings: RunSettings) -> RunSettings:
    """Replaces "auto" by what is chosen, so that a resumed run makes the same choice."""
    training = settings.training
    strategy = resolve_strategy(training.strategy)
    jit = resolve_jit(training.jit, strategy)
    shards = training.cpu_shards
    if TASK_RUNS[settings.task].independent_rows:
        shards = resolve_shards(shards, jit, strategy)
    training = dataclasses.replace(
        training,
        metric_goal=goal_of(settings),
        jit=jit,
        strategy=strategy,
        cpu_shards=max(shards, 1),
    )
    distillation = TASK_RUNS[settings.task].distillation(settings)
    return settings.replace(training=training, distillation=distillation)
