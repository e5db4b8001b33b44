"""Operations of tasks: made from a preset, trained, and measured by one call."""

import csv
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.models import get_preset
from keras_attn.tasks import Task
from keras_attn.tasks.operations import operation
from keras_attn.training import measuring
from keras_attn.training.given_data import written_data
from keras_attn.training.prepared import prepare, read_data
from keras_attn.training.resolving import check
from keras_attn.training.run import train
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.validation import require

_START, _DATA = "start", "data"
# Sections of a recipe that a task has already.
_OF_THE_TASK = ("tokenizers", "model", "attention")


@dataclasses.dataclass(frozen=True)
class FitResult:
    """Result of a training.

    Attributes:
        folder: The run folder; `None` for one that was deleted.
        history: The rows of metrics.csv, numbers by name.
        test: Metrics on the test examples; `None` without any.
    """

    folder: Path | None
    history: list[dict[str, float]]
    test: dict[str, float] | None


@operation("from_preset")
def from_preset(
    task_class: type[Task],
    name: str,
    data: Any,
    task: str | None = None,
    columns: str | Sequence[str] | None = None,
    **settings: Any,
) -> Task:
    """Makes a task with random weights; see `Task.from_preset`."""
    preset = get_preset(name)
    fitting = [one for one in preset.tasks if issubclass(TASK_RUNS[one].task_class, task_class)]
    require(
        bool(fitting) and task in (None, *fitting),
        f"The preset must be one for a {task_class.__name__}.",
        preset=name,
        tasks=preset.tasks,
        task=task,
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = written_data(data, Path(folder), "train", columns)
        start = {"preset": name, "task": task or fitting[0], "data": {"train": paths}}
        resolved = RunSettings.resolve(start, _layer(settings))
        check(resolved)
        run_data = read_data(resolved)
    run_data = dataclasses.replace(run_data, texts={"train": run_data.texts["train"]})
    made = prepare(run_data).task
    made.preset = name
    made.run_data = run_data
    return made


@operation("fit")
def fit(
    task: Task,
    train_data: Any,
    validation: Any = None,
    test: Any = None,
    out: str | Path | None = None,
    columns: str | Sequence[str] | None = None,
    resume: bool = False,
    **settings: Any,
) -> FitResult:
    """Trains a task; see `Task.fit`."""
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            result = fit(task, train_data, validation, test, run, columns, False, **settings)
            return dataclasses.replace(result, folder=None)
    out = Path(out)
    layers = [] if resume else _layers_of(task, out)
    given = {"train": train_data, "valid": validation, "test": test}
    data = {
        name: written_data(value, out / _DATA, name, columns)
        for name, value in given.items()
        if value is not None
    }
    ready = vars(task).pop("run_data", None)
    results = train(out, *layers, {"data": data}, _layer(settings), resume=resume, ready=ready)
    trained = Task.load(out / "task")
    if _shapes(trained) == _shapes(task):
        task.backbone.set_weights(trained.backbone.get_weights())
        trained.backbone = task.backbone
    vars(task).update(vars(trained))
    task.preset = None
    with (out / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    return FitResult(out, rows, results)


@operation("evaluate")
def evaluate(
    task: Task,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Measures a task; see `Task.evaluate`."""
    with tempfile.TemporaryDirectory() as folder:
        paths = written_data(data, Path(folder), "data", columns)
        chosen = [metrics] if isinstance(metrics, str) else metrics
        return measuring.evaluate(task, DataSettings(paths), chosen, **options)


def _layers_of(task: Task, out: Path) -> list[dict[str, Any]]:
    """Settings that begin with a task, which is saved in the run folder."""
    start = out / _START
    task.save(start)
    preset = getattr(task, "preset", None)
    recipe = get_preset(preset).recipe(task.kind) if preset else {}
    kept = {name: value for name, value in recipe.items() if name not in _OF_THE_TASK}
    return [kept, {"init": str(start), "task": task.kind}]


def _layer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by section: names of `TrainingSettings` belong to "training"."""
    training = {field.name for field in dataclasses.fields(TrainingSettings)}
    layer = {name: value for name, value in settings.items() if name not in training}
    numbers = {name: value for name, value in settings.items() if name in training}
    if numbers:
        layer["training"] = dict(layer.get("training", {})) | numbers
    return layer


def _shapes(task: Task) -> list[tuple]:
    return [tuple(weight.shape) for weight in task.backbone.weights]
