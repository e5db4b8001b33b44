"""Measurement of trained and exported tasks on texts."""

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.data.files import have_columns
from keras_attn.files import write_text
from keras_attn.progress import progress
from keras_attn.tasks import task_folder
from keras_attn.training.prepared import PreparedRun
from keras_attn.training.reporting.errors import write_errors, write_wrong
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.run_texts import require_few_malformed
from keras_attn.training.task_runs import TASK_RUNS, TaskRun
from keras_attn.validation import require

RESULTS_FILE = "results.json"
_JUDGED = 500  # texts of a validation
_SHOWN = 10
_FEW = 10  # items of a test


def run_of(task: Any, recorded: Mapping[str, Any]) -> TaskRun:
    """Finds by what texts and metrics a task is measured.

    Args:
        task: The task, exported or not.
        recorded: Settings of its run, if known: one class of tasks is trained in several ways.
    """
    name = recorded.get("task") or task.kind
    require(name in TASK_RUNS, "Such a task cannot be measured.", task=name)
    return TASK_RUNS[name]


def evaluate(
    task: Any,
    data: DataSettings,
    metrics: Sequence[str] | None = None,
    recorded: Mapping[str, Any] | None = None,
    errors: str | Path | None = None,
    beams: int | None = None,
    perplexity: bool = False,
) -> dict[str, Any]:
    """Measures a task on the texts that `data.train` names.

    Args:
        task: The task, exported or not.
        data: Where the texts come from.
        metrics: Names of metrics; those of the run, or the usual ones, by default.
        recorded: Settings of the task's run, if known.
        errors: A CSV file that gets what the task answered wrong, the worst first.
        beams: Width of the beam search; the task's own by default.
        perplexity: Whether to add the perplexity of the targets.

    Returns:
        The metrics by name, and "items", the number of texts.

    Raises:
        UserError: The texts or a metric are not for such a task, or more rows are malformed than
            `data.max_dropped` allows.
    """
    recorded = recorded or {}
    run = run_of(task, recorded)
    data = run.as_trained(task, _with_columns(data, recorded))
    texts = run.read_test(data.train, data)
    require_few_malformed(texts, data.max_dropped, "--max-dropped ")
    metrics = metrics or run.metrics_of(texts, data.train, recorded.get("metrics"))
    for line in run.remarks(task, texts):
        print(line)
    run.check_options(beams, perplexity)
    if cut := run.count_cut(texts, task):
        print(f"truncated: {cut:,} of {len(texts):,} {run.items}, which the task reads in part")
    with progress(run.count(texts), "measuring") as done:
        answers = run.answers(task, texts, beams, done)
    results = run.scores(texts, answers, metrics)
    if perplexity:
        results |= run.perplexity(task, texts)
    if errors is not None:
        write_wrong(errors, run.judged(texts, answers))
    return results


def _with_columns(data: DataSettings, recorded: Mapping[str, Any]) -> DataSettings:
    """The columns of the run that was recorded, where none are given and a file has them."""
    columns = recorded.get("data", {}).get("columns") or {}
    names = columns.values()
    is_named = bool(names) and all(isinstance(name, str) for name in names)
    is_file = bool(data.train) and Path(data.train[0]).is_file()
    if data.columns or not (
        is_named and is_file and have_columns(data.train, names, data.encoding)
    ):
        return data
    shown = ", ".join(f"{role}={name}" for role, name in columns.items())
    print(f"{data.train[0]}: columns {shown}, as in the run")
    return dataclasses.replace(data, columns=columns)


def choose_thresholds(out: Path, prepared: PreparedRun) -> None:
    """Chooses the thresholds of the trained task of a run by its validation texts, and saves it."""
    texts, run = prepared.held_out, TASK_RUNS[prepared.settings.task]
    require(texts is not None, "`training.thresholds` needs validation texts.", validation=None)
    task = run.task_class.load(task_folder(out))
    run.choose_thresholds(task, texts)
    task.save(task_folder(out))
    prepared.task.thresholds = task.thresholds
    chosen = zip(task.labels, task.thresholds, strict=True)
    shown = ", ".join(f"{label} {value:.2f}" for label, value in itertools.islice(chosen, _SHOWN))
    more = " …" if len(task.labels) > _SHOWN else ""
    print(f"Thresholds by F1 on {texts.name}: {shown}{more}.", flush=True)


def measure_test(out: Path, settings: RunSettings, texts: Any) -> dict[str, float]:
    """Measures the trained task of a run on its test texts, and writes results.json.

    Args:
        out: The run folder.
        settings: The settings of the run.
        texts: The test texts.

    Returns:
        The metrics by name.
    """
    run = TASK_RUNS[settings.task]
    # As it is loaded later: in float32, whatever precision it was trained in.
    task = run.task_class.load(task_folder(out))
    print(f"Measuring on {texts.name} …", flush=True)
    if cut := run.count_cut(texts, task):
        print(f" truncated: {cut:,} of {len(texts):,} test {run.items}", flush=True)
    with progress(run.count(texts), "measuring") as done:
        results = run.measure(task, texts, settings.metrics, progress=done)
    write_text(out / RESULTS_FILE, json.dumps(results, indent=1) + "\n")
    names = run.shown_metrics(results, settings.metrics)
    shown = ", ".join(f"{name} {results[name]:.2f}" for name in names)
    count = results["items"]
    few = " So few say little." if count < _FEW else ""
    print(f"On {count:,} test {run.items}: {shown}.{few}", flush=True)
    return results


def judge_validation(out: Path, prepared: PreparedRun) -> None:
    """Judges the trained task of a run on its validation texts, and writes errors.json.

    Nothing is written for tasks whose answers are neither right nor wrong.

    Args:
        out: The run folder.
        prepared: The run, whose task is trained.
    """
    settings, task, texts = prepared.settings, prepared.task, prepared.held_out
    run = TASK_RUNS[settings.task]
    if prepared.validation is None:
        return
    metrics = settings.metrics or run.default_metrics(settings.data.train)
    baseline = run.baseline(texts, metrics, task)
    if baseline is not None:
        first = run.first(texts, prepared.validation.examples, _JUDGED)
        answers = run.answers(task, first, run.beams)
        charts = run.charts(task, first, answers)
        write_errors(out, texts.name, run.judged(first, answers), baseline, charts)
