"""Operations of tasks: made from a preset, trained, and measured by one call."""

import contextlib
import dataclasses
import filecmp
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import yaml

from keras_attn.data.series.memory import columns_of_array, write_series
from keras_attn.files import write_text
from keras_attn.models import get_preset
from keras_attn.reading import read_table
from keras_attn.task_names import current_task_name
from keras_attn.tasks import Task
from keras_attn.training import measuring
from keras_attn.training.given_data import Columns, Parts, is_path, paths_of, written_data
from keras_attn.training.prepared import prepare, read_data
from keras_attn.training.reporting.run_folder import (
    CHECKPOINTS_FOLDER,
    TEACHERS_FOLDER,
    require_new,
)
from keras_attn.training.resolving import check, require_fitting_task, resolved
from keras_attn.training.run import train
from keras_attn.training.run_settings import (
    RUN_FILE,
    SERIES_SETTINGS,
    DataSettings,
    RunSettings,
)
from keras_attn.training.settings import RENAMED_SETTINGS, TrainingSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.training.teachers import checksum
from keras_attn.validation import require, require_one_of

_START, _DATA = "start", "data"
# Tasks whose inputs are the names of files.
_OF_FILES = ("image_classification",)
# Arguments of Keras' `fit`, and what is meant here.
_OF_KERAS = {
    "validation_data": "`validation=`",
    "validation_split": "`data={'hold_out': N}`, a number of examples",
    "batch_size": "`batch_tokens=`, which counts tokens",
    "verbose": "progress is always shown",
    "shuffle": "examples are always shuffled",
}


@dataclasses.dataclass(frozen=True)
class FitResult:
    """Result of a training.

    Attributes:
        folder: The run folder; `None` for one that was deleted.
        history: The rows of metrics.csv, numbers by name.
        test: Metrics on the test examples; `None` without any.
    """

    folder: Path | None
    history: list[dict[str, float]] = dataclasses.field(repr=False)
    test: dict[str, float] | None


def from_preset(
    task_class: type[Task],
    name: str,
    data: Any,
    task: str | None = None,
    columns: Columns | None = None,
    teacher: Any = None,
    **settings: Any,
) -> Task:
    """Makes a task with random weights; see `Task.from_preset`."""
    preset = get_preset(name)
    task = current_task_name(task, warns=True)
    if task is not None:
        require_one_of("task", task, preset.tasks)
    fitting = [one for one in preset.tasks if issubclass(TASK_RUNS[one].task_class, task_class)]
    require(
        bool(fitting) and task in (None, *fitting),
        f"The preset must be one for a {task_class.__name__}.",
        preset=name,
        tasks=preset.tasks,
        task=task,
    )
    task = task or fitting[0]
    with tempfile.TemporaryDirectory() as folder:
        unlabeled = bool(settings.get("data", {}).get("unlabeled"))
        found = _written({"train": data}, Path(folder), columns, task, unlabeled)
        start = {"preset": name, "task": task, "data": found}
        complete = resolved(start, _layer(settings), _taught_by(teacher, Path(folder)))
        check(complete)
        run_data = read_data(complete, whole=True)
    run_data = dataclasses.replace(run_data, texts={"train": run_data.texts["train"]})
    made = prepare(run_data).task
    made.preset = name
    made.run_data = run_data
    return made


def fit(
    task: Task,
    train_data: Any,
    validation: Any = None,
    test: Any = None,
    out: str | Path | None = None,
    columns: Columns | None = None,
    resume: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    teacher: Any = None,
    **settings: Any,
) -> FitResult:
    """Trains a task; see `Task.fit`."""
    given = {"train": train_data, "valid": validation, "test": test}
    given = {name: value for name, value in given.items() if value is not None}
    layer, options = _layer(settings), {"resume": resume, "callbacks": callbacks}
    options["teacher"] = teacher
    if out is not None:
        return _fit(task, given, Path(out), columns, layer, options)
    require(not resume, "`resume=True` needs `out`, the folder of the run.", out=out)
    with tempfile.TemporaryDirectory() as folder:
        options["reports"] = False  # of a folder that is deleted
        result = _fit(task, given, Path(folder) / "run", columns, layer, options)
    return dataclasses.replace(result, folder=None)


def _fit(
    task: Task,
    given: Mapping[str, Any],
    out: Path,
    columns: Columns | None,
    layer: Mapping[str, Any],
    options: Mapping[str, Any],
) -> FitResult:
    """Trains a task in a folder, by a layer of settings and options of `train`."""
    resume = options["resume"] and (out / RUN_FILE).is_file()
    options = {**options, "resume": resume}
    teacher = options.pop("teacher")
    kind = current_task_name(layer.get("task", task.kind))
    with tempfile.TemporaryDirectory() as staged:
        columns = columns or getattr(task, "columns", None)
        unlabeled = bool(layer.get("data", {}).get("unlabeled"))
        data = _written(given, Path(staged), columns, kind, unlabeled)
        if resume:
            data = _moved(data, Path(staged), _same_file, out)
            taught = _taught_by(teacher, out)
            results = train(out, {"data": data}, layer, taught, **options)
        else:
            require_new(out, allowed=())
            require_fitting_task(kind, DataSettings(**{**layer.get("data", {}), **data}))
            with _left_as_it_was(out):
                layers = _layers_of(task, out)
                data = _moved(data, Path(staged), _new_file, out)
                ready = vars(task).pop("run_data", None)
                layers += [{"data": data}, layer, _taught_by(teacher, out)]
                results = train(out, *layers, ready=ready, **options)
    trained = Task.load(out / "task")
    if _shapes(trained) == _shapes(task):
        task.backbone.set_weights(trained.backbone.get_weights())
        trained.backbone = task.backbone
    vars(task).update(vars(trained))
    task.preset = None
    rows = read_table(out / "metrics.csv")
    history = [{name: float(value) for name, value in row.items() if value} for row in rows]
    return FitResult(out, history, results)


def evaluate(
    task: Task,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    columns: Columns | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Measures a task; see `Task.evaluate`."""
    for name in options:
        require_one_of("option", name, ("beams", "perplexity", "errors"))
    with tempfile.TemporaryDirectory() as folder:
        columns = columns or getattr(task, "columns", None)
        found = _written({"train": data}, Path(folder), columns, task.kind)
        chosen = [metrics] if isinstance(metrics, str) else metrics
        return measuring.evaluate(task, DataSettings(**found), chosen, **options)


def _written(
    given: Mapping[str, Any],
    folder: Path,
    columns: Columns | None,
    task: str,
    unlabeled: bool = False,
) -> dict[str, Any]:
    """Writes data in memory to files, and returns settings of the section `data`."""
    run = TASK_RUNS[task]
    if run.of_series:
        return _written_series(given, folder, columns)
    parts = Parts(run.parts_in(columns), run.optional_columns, task in _OF_FILES)
    train = Parts(parts.names[:1]) if unlabeled else parts
    data: dict[str, Any] = {
        name: written_data(value, folder, name, train if name == "train" else parts, columns)
        for name, value in given.items()
    }
    of_files = [is_path(value) for value in given.values()]
    if columns is not None and any(of_files):
        require(all(of_files), "`columns` mean either files or data in memory.", columns=columns)
        data["columns"] = parts.named(columns)
    elif parts.names != run.columns:
        data["columns"] = {part: part for part in parts.names}
    return data


def _written_series(
    given: Mapping[str, Any], folder: Path, columns: Columns | None
) -> dict[str, Any]:
    """Writes series in memory to files, and returns settings of the section `data`."""
    require(
        columns is None or isinstance(columns, Mapping),
        "`columns` of series must be a dict such as {'time': 'date', 'target': ['sales']}.",
        columns=columns,
    )
    data: dict[str, Any] = {}
    for name, value in given.items():
        if is_path(value):
            data[name] = paths_of(value)
            continue
        columns = columns or columns_of_array(value)
        data[name] = [str(write_series(value, folder / f"{name}.jsonl", columns))]
    return data | ({} if columns is None else {"columns": dict(columns)})


def _moved(
    data: dict[str, Any], staged: Path, move: Callable[[Path, Path], Path], out: Path
) -> dict[str, Any]:
    """Puts data that were in memory into the run folder, and returns all paths."""

    def place(path: str) -> str:
        return str(move(Path(path), out / _DATA)) if Path(path).parent == staged else path

    return {
        name: list(map(place, value)) if isinstance(value, list) else value
        for name, value in data.items()
    }


def _new_file(file: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(file, folder))


def _same_file(file: Path, folder: Path) -> Path:
    kept = folder / file.name
    require(
        kept.is_file() and filecmp.cmp(kept, file, shallow=False),
        "A run is resumed with the data that it began with; these are different.",
        data=file.stem,
        run=str(folder.parent),
    )
    return kept


@contextlib.contextmanager
def _left_as_it_was(out: Path) -> Iterator[None]:
    """Removes what was written into a new or empty folder if no training began in it."""
    before = set(out.iterdir()) if out.is_dir() else None
    try:
        yield
    except BaseException:
        if not any((out / CHECKPOINTS_FOLDER).glob("*")):
            if before is None:
                shutil.rmtree(out, ignore_errors=True)
            else:
                for entry in set(out.iterdir()) - before:
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        raise


def _layers_of(task: Task, out: Path) -> list[dict[str, Any]]:
    """Settings that begin with a task, which is saved in the run folder.

    One of a preset that was never trained is trained by the preset's recipe.
    """
    start = out / _START
    task.save(start)
    preset = getattr(task, "preset", None)
    of_preset = {"preset": preset, "task": task.kind}
    if preset:
        write_text(start / RUN_FILE, yaml.safe_dump(of_preset, sort_keys=False))
    return [of_preset | {"init": str(start)}]


def _taught_by(teacher: Any, folder: Path) -> dict[str, Any]:
    """Settings by which a task learns from teachers, saved in a folder or compared with those."""
    if teacher is None:
        return {}
    teachers = list(teacher) if isinstance(teacher, list | tuple) else [teacher]
    paths = []
    for number, one in enumerate(teachers, 1):
        require(
            isinstance(one, Task) or is_path(one),
            "`teacher` must be a task, the folder of a run or task, or a list of them.",
            teacher=type(one).__name__,
        )
        if isinstance(one, Task):
            one = _saved_teacher(one, folder / TEACHERS_FOLDER / str(number))
        paths.append(str(one))
    return {"distillation": {"teachers": paths}}


def _saved_teacher(teacher: Task, path: Path) -> Path:
    if path.is_dir():
        require(
            checksum(Task.load(path)) == checksum(teacher),
            "The teachers must be those that the run began with.",
            run=str(path.parent.parent),
        )
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    teacher.save(path)
    return path


def _layer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by section: those of `TrainingSettings` to "training", those of series to "data"."""
    training = {field.name for field in dataclasses.fields(TrainingSettings)}
    sections = {field.name for field in dataclasses.fields(RunSettings)} | {"extends"}
    for name in settings:
        require(
            name not in _OF_KERAS,
            f"`{name}` is an argument of Keras' `fit`; here: {_OF_KERAS.get(name)}.",
        )
        if name not in RENAMED_SETTINGS:
            require_one_of(
                "setting", name, [*sorted(sections), *sorted(training), *SERIES_SETTINGS]
            )
    training |= set(RENAMED_SETTINGS)
    others = training | set(SERIES_SETTINGS)
    layer = {name: value for name, value in settings.items() if name not in others}
    series = {name: settings[name] for name in SERIES_SETTINGS if name in settings}
    if series:
        layer["data"] = dict(layer.get("data", {})) | series
    numbers = {name: value for name, value in settings.items() if name in training}
    if numbers:
        layer["training"] = dict(layer.get("training", {})) | numbers
    return layer


def _shapes(task: Task) -> list[tuple]:
    return [tuple(weight.shape) for weight in task.backbone.weights]
