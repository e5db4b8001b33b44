"""A whole run: from texts to a trained and measured task."""

import dataclasses
import gc
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attn.memory import return_free_memory
from keras_attn.training.answers import RunAnswers
from keras_attn.training.loop.plans import EpochPlans
from keras_attn.training.loop.trainer import Trainer
from keras_attn.training.measuring import choose_thresholds, judge_validation, measure_test
from keras_attn.training.prepared import PreparedRun, RunData, prepare, read_data
from keras_attn.training.reporting.description import (
    describe_new_head,
    describe_overlap,
    describe_rules,
    describe_run,
)
from keras_attn.training.reporting.held_out import write_held_out
from keras_attn.training.reporting.report import write_report
from keras_attn.training.reporting.run_folder import (
    ANSWERS_FOLDER,
    CACHE_FOLDER,
    TOKENIZERS_FOLDER,
    RunFile,
    RunFolder,
    RunTokenizers,
)
from keras_attn.training.resolving import settings_of_run
from keras_attn.training.run_settings import RUN_FILE, RunSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.training.workers.workers import Workers, joined_workers


def train(
    out: str | Path,
    *layers: Mapping[str, Any],
    resume: bool = False,
    ready: RunData | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    reports: bool = True,
) -> dict[str, float] | None:
    """Runs a training from texts to a saved task.

    The run folder gets `run.yaml` with every setting, `tokenizers/`, `cache/` with the
    texts and tokens (see `DataSettings.cache`), `answers/` with those of teachers that are the
    targets, `held_out.json` with a few inputs for an export of a kind without samples, what
    `Trainer` writes, the trained task in `task/`, and `results.json` with the metrics on the test
    texts.

    Args:
        out: The run folder.
        *layers: Nested settings as in run.yaml, later ones override earlier ones.
        resume: Continue the run in the folder; its own run.yaml is the first layer then. If there
            is none yet, and the layers name data, it begins.
        ready: Data whose examples are used again if they are those of this run.
        callbacks: Callbacks for the training (see `Trainer`).
        reports: Whether to write report.html, if matplotlib is installed.

    Returns:
        The metrics on the test texts; `None` without any, and for workers other than the first.

    Raises:
        UserError: Settings, texts or the folder are wrong.
        TrainingInterrupted: A signal ended the training after a checkpoint.
        WorkerLost: Not all workers joined, or one of them was lost.
    """
    out = Path(out)
    settings, is_resumed = settings_of_run(out, layers, resume)
    with joined_workers(settings.training) as workers:
        is_resumed = _agree(workers, settings, is_resumed)
        _open(out, settings, is_resumed, workers)
        roles = TASK_RUNS[settings.task].roles
        tokenizers = RunTokenizers(out / TOKENIZERS_FOLDER, roles, is_resumed, workers)
        folders = {
            "cache": out / CACHE_FOLDER,
            "answers": RunAnswers(out / ANSWERS_FOLDER, workers),
        }
        data = read_data(settings, tokenizers, workers.scope, ready, **folders)
        workers.require_equal("training data", data.examples.checksum)
        prepared = prepare(data, workers.scope)
        training, examples = prepared.settings.training, data.examples
        run_file = RunFile(out, prepared.settings, is_resumed)
        callbacks = [*([run_file] if workers.is_chief else []), *callbacks]
        teaching = prepared.teaching
        trainer = Trainer(prepared.task, training, out, callbacks, teaching=teaching)
        if workers.is_chief:
            _describe(data, prepared, trainer.plans(examples))
            write_held_out(out, _held_out_inputs(prepared))
        del data  # its texts
        trainer.fit(examples, prepared.validation, is_resumed)
        run_file.require_true(workers)
        del trainer, examples, teaching
        prepared = dataclasses.replace(prepared, teaching=None)
        gc.collect()  # the graphs of the training
        return_free_memory()
        if workers.is_chief and training.thresholds is not None:
            choose_thresholds(out, prepared)
        return _measure(out, prepared, workers, reports)


def _agree(workers: Workers, settings: RunSettings, is_resumed: bool) -> bool:
    """Raises unless all workers have the chief's settings; returns whether it resumes the run."""
    (is_resumed,) = workers.from_chief(is_resumed)
    sections = settings.to_dict()
    del sections["data"]  # whose place may be another on each machine
    training = {f"training.{name}": value for name, value in sections.pop("training").items()}
    workers.require_equal_settings(sections | training)
    return is_resumed


def _open(out: Path, settings: RunSettings, is_resumed: bool, workers: Workers) -> None:
    """Makes sure that the folder is free and shared, and notes the settings of a new run."""
    with RunFolder(out, is_resumed, writes=workers.is_chief):
        pass
    workers.require_shared(out)
    if workers.is_chief and not is_resumed:
        # Written again when the lengths are known; a run killed before that can be resumed too.
        settings.write(out / RUN_FILE)


def _describe(data: RunData, prepared: PreparedRun, plans: EpochPlans) -> None:
    """Prints what is trained, and what readers of the test metrics need to know."""
    task = prepared.task
    plan, padding = plans.of(0)
    held_out = prepared.validation.examples if prepared.validation else None
    describe_run(prepared.settings, data.texts, data.examples, len(plan), padding, task, held_out)
    describe_overlap(data.texts)
    describe_rules(data.applied_rules)
    run = TASK_RUNS[prepared.settings.task]
    for line in run.described(data.texts["train"]):
        print(line, flush=True)
    for doubt in run.doubts(data.texts["train"], task.tokenizers):
        print(f"   warning: {doubt}", flush=True)
    if prepared.test is not None:
        for line in run.remarks(task, prepared.test):
            print(line, flush=True)
    if data.source_task is not data.loaded_task:
        describe_new_head(task, data.loaded_task)


def _held_out_inputs(prepared: PreparedRun) -> Sequence[str | bytes]:
    """A few held-out inputs as the trained task reads them."""
    if prepared.held_out is None:
        return []
    return TASK_RUNS[prepared.settings.task].held_out_inputs(prepared.task, prepared.held_out)


def _measure(
    out: Path, prepared: PreparedRun, workers: Workers, reports: bool
) -> dict[str, float] | None:
    """Measures the trained task on the test texts, and writes the report of the run."""
    results = None
    if workers.is_chief:
        if prepared.test is not None:
            results = measure_test(out, prepared.settings, prepared.test)
        if reports:
            judge_validation(out, prepared)
        if reports and importlib.util.find_spec("matplotlib"):
            print(f"Report: {write_report(out)}", flush=True)
        elif reports:
            print(
                "Report: none without matplotlib (pip install 'keras_attn[viz]'; `keras-attn "
                f"report {out}` writes it then)",
                flush=True,
            )
    workers.barrier()
    return results
