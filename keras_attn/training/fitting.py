"""Tasks made from presets, trained and measured by a call."""

import csv
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attn.models import get_preset
from keras_attn.tasks import Task
from keras_attn.tasks.operations import operation
from keras_attn.training.given_data import written_data
from keras_attn.training.run import check, train
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.validation import require

_START, _DATA = "start", "data"
# Of a recipe: what a task that is there has already.
_OF_THE_TASK = ("tokenizers", "model", "attention")


@dataclasses.dataclass(frozen=True)
class FitResult:
    """What a training came to.

    Attributes:
        folder: The run folder; `None` where none was named.
        history: The rows of metrics.csv, numbers by name.
        test: Metrics on the test examples; `None` where there were none.
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
        resolved = RunSettings.resolve(
            {"preset": name, "task": task or fitting[0], "data": {"train": paths}},
            _layer(settings),
        )
        check(resolved)
        keras.utils.set_random_seed(resolved.training.seed)
        run = TASK_RUNS[resolved.task]
        texts = run.read_texts(resolved.data, resolved.training.seed)["train"]
        tokenizers = run.train_tokenizers(resolved, texts) if run.roles else {}
        resolved, _ = run.examples(resolved, texts, tokenizers, None)
        made = run.task(resolved, texts, tokenizers, None)
    made.preset = name
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
    results = train(out, *layers, {"data": data}, _layer(settings), resume=resume)
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
    run = TASK_RUNS[task.kind]
    with tempfile.TemporaryDirectory() as folder:
        paths = written_data(data, Path(folder), "data", columns)
        texts = run.read_test(paths, DataSettings(paths))
        chosen = [metrics] if isinstance(metrics, str) else metrics
        chosen = chosen or run.metrics_of(texts, paths, None)
        return run.measure(task, texts, chosen, **options)


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
