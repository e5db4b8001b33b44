"""Mechanisms by tasks for long sequences, each trained by a run of its own.

Implements `keras-attn benchmark arena`.
"""

import contextlib
import csv
import functools
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from keras_attn.documents import parse_json, read_yaml
from keras_attn.files import wait_for_writer, write_text
from keras_attn.processes import python_command, python_environment
from keras_attn.recipes import merged
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.validation import require, require_one_of, require_positive

_CELL_FILE = "arena.json"


class ArenaTask(NamedTuple):
    """A task of the arena.

    Attributes:
        settings: Settings of its runs, all but the attention.
        metric: The metric that is compared, in percent.
        of_files: Whether its texts come from files of users.
        causal: Whether mechanisms are causal in it.
        pretraining: Further settings of runs that learn masked tokens of its inputs first; `None`
            where there are none.
    """

    settings: Mapping[str, Any]
    metric: str = "accuracy"
    of_files: bool = False
    causal: bool = False
    pretraining: Mapping[str, Any] | None = None


def _classification(
    data: list[str], length: int, pooling: str = "mean", **tokenizer: Any
) -> dict[str, Any]:
    return {
        "task": "classification",
        "preset": "arena_tiny",
        "model": {"pooling": pooling},
        "data": {"train": data, "max_source_length": length},
        "tokenizers": {"text": tokenizer},
    }


def _text_task(data: list[str], length: int, of_files: bool = False, **tokenizer: Any) -> ArenaTask:
    settings = _classification(data, length, **tokenizer)
    pretraining: dict[str, Any] = {"task": "masked_lm", "data": {"test": []}}
    if "vocabulary_size" in tokenizer:  # room for the mask
        size = tokenizer["vocabulary_size"] + 1
        pretraining["tokenizers"] = {"text": {"vocabulary_size": size}}
    return ArenaTask(settings, of_files=of_files, pretraining=pretraining)


def _retrieval() -> ArenaTask:
    """Pairs of texts of 4,000 bytes, from the columns of Long Range Arena's files."""
    settings = _classification([], 8_003, kind="byte_level_bpe", vocabulary_size=260)
    settings["data"]["columns"] = {"text": 4, "other": 5, "label": 1}
    return ArenaTask(settings, of_files=True)


def _recall(name: str) -> ArenaTask:
    settings = {
        "task": "token_classification",
        "preset": "recall_tiny",
        "data": {"train": [name], "max_source_length": 4_096},
    }
    return ArenaTask(settings, metric="tag_accuracy", causal=True)


# Lengths are those of the longest text with its start and end. A list's first operator says most
# of its value, so ListOps is read from the vector at the start.
ARENA_TASKS = {
    "listops": _text_task(
        ["listops:min_length=500,max_length=2000"], 2_002, pooling="first", kind="symbols"
    ),
    "bytes": _text_task([], 1_002, of_files=True, kind="byte_level_bpe", vocabulary_size=260),
    "retrieval": _retrieval(),
    "pathfinder": _text_task(["pathfinder"], 1_026, kind="characters"),
    **{name: _recall(name) for name in ("recall", "induction", "selective_copying", "duplication")},
}

MECHANISMS = ("dense", "local", "longformer", "linear", "performer", "gated_linear")
CAUSAL_MECHANISMS = ("dense", "local", "linear", "performer", "gated_linear", "delta_rule")


def run_arena(
    out: str | Path,
    tasks: Sequence[str],
    mechanisms: Sequence[str] | None = None,
    files: Mapping[str, Sequence[str]] | None = None,
    steps: int | None = 1_000,
    minutes: float | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    probes: Sequence[str] = (),
    watch: Callable[[str], None] = print,
    pretrain_steps: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Trains and measures every mechanism on every task, one after the other.

    Each has a run folder `OUT/TASK/MECHANISM`: what is finished there is not trained again, and an
    interrupted run is continued. All runs of a task have the same data, vocabulary, sizes and
    batches.

    Args:
        out: Folder of all runs.
        tasks: Names from `ARENA_TASKS`, those of generated data also with arguments, such as
            `recall:pairs=16,length=256`.
        mechanisms: Names of mechanisms; by default `MECHANISMS`, or `CAUSAL_MECHANISMS` where a
            task is causal.
        files: Settings `data` of tasks that read files: `train`, and `test`.
        steps: Updates of each run, or `None`.
        minutes: Minutes of each run, or `None`.
        seed: Seed of the weights and of the order of the data.
        settings: Further settings of all runs, nested as in run.yaml.
        probes: Generated data with arguments that finished runs are also measured on, such as
            `recall:pairs=16,length=128`.
        watch: Called with a line about what is being done.
        pretrain_steps: Updates in which masked tokens of the task's inputs are learned before the
            task, by a run of its own in `OUT/TASK/MECHANISM_masked_N`; the task's is then
            `OUT/TASK/MECHANISM_after_N`, and starts from its weights.

    Yields:
        A dict with `task`, `mechanism`, `metric`, `value`, `majority` (what the most frequent
        answer gives), `steps`, `seconds` (of training), `memory_mb` (the process's most) and
        `probes`, the values on them by name, and after a pre-training `pretraining` with its own
        `metric` (perplexity of the masked tokens), `value`, `steps`, `seconds` and `memory_mb`;
        or with `error`, the line of a run that names its error.

    Raises:
        UserError: A task, an argument of it, a mechanism or a file is unknown; a task reads files
            and is given none, or cannot be pre-trained where that is asked for; several tasks read
            files, or none does and there are some; a name occurs twice; there are `probes` and
            several tasks, or a probe is not the task's; a folder has a run with other settings.
    """
    require(
        not probes or len(tasks) == 1,
        "Runs are measured on further tasks where all of them are of one task.",
        tasks=tasks,
        probes=probes,
    )
    if pretrain_steps is not None:
        require_positive(pretrain_steps=pretrain_steps)
    for task in tasks:
        require_one_of("task", _base_name(task), ARENA_TASKS)
    for names in (tasks, mechanisms or ()):
        require(len(set(names)) == len(names), "Each needs to be named once.", names=names)
    _require_known(tasks, mechanisms or (), files or {}, settings or {}, probes)
    of_files = [task for task in tasks if ARENA_TASKS[_base_name(task)].of_files]
    require(len(of_files) < 2, "Only one task can read the files.", tasks=of_files)
    is_given = any((files or {}).values())
    require(bool(of_files) or not is_given, "No task reads files.", tasks=tasks, files=files)
    for task in tasks:
        for part, option in (("train", "--files"), ("test", "--test-files")):
            require(
                not ARENA_TASKS[_base_name(task)].of_files or bool((files or {}).get(part)),
                f"The task {task} reads files: name those to {part} on with {option}.",
                files=files,
            )
        require(
            pretrain_steps is None or ARENA_TASKS[_base_name(task)].pretraining is not None,
            f"The task {task} has no pre-training.",
            pretrain_steps=pretrain_steps,
        )
    from keras_attn.training.run_settings import RunSettings

    for task in tasks:  # settings that a run would refuse
        first = (mechanisms or CAUSAL_MECHANISMS)[0]
        RunSettings.resolve(_settings(task, first, files, steps, minutes, seed), settings or {})
    for task in tasks:
        causal = ARENA_TASKS[_base_name(task)].causal
        for mechanism in mechanisms or (CAUSAL_MECHANISMS if causal else MECHANISMS):
            folder, name = (
                Path(out) / task.replace("/", "-") / mechanism,
                f"{task} with {mechanism}",
            )
            layers = [_settings(task, mechanism, files, steps, minutes, seed), dict(settings or {})]
            cells = [_Cell(folder, layers, name)]
            if pretrain_steps:
                cells = _pretrained_cells(cells[0], ARENA_TASKS[_base_name(task)], pretrain_steps)
            failed = next((cell for cell in cells if not _is_done(cell, watch)), None)
            if failed is None:
                yield _shown(cells, mechanism, probes, watch)
            else:
                error = _error_in(failed.folder.with_suffix(".log"))
                yield {"task": task, "mechanism": mechanism, "error": error}


def _require_known(
    tasks: Sequence[str],
    mechanisms: Sequence[str],
    files: Mapping[str, Sequence[str]],
    settings: Mapping[str, Any],
    probes: Sequence[str],
) -> None:
    """Raises where a run would fail, before the first of them is trained."""
    from keras_attn.data.reading.content import is_remote
    from keras_attn.data.reading.paths import expanded
    from keras_attn.layers.attention.registry import ATTENTION
    from keras_attn.tokenizers.training_library import training_library

    for mechanism in mechanisms:
        require_one_of("mechanism", mechanism, ATTENTION)
    attention = settings.get("attention")
    require(
        attention is None or (isinstance(attention, Mapping) and "name" not in attention),
        "The mechanisms of an arena are those of --mechanisms; other settings may name their "
        "arguments, such as attention.short_convolution=4.",
        attention=attention,
    )
    columns = settings.get("data", {}).get("columns")
    for task in tasks:
        one = ARENA_TASKS[_base_name(task)]
        if one.settings.get("tokenizers", {}).get("text", {}).get("kind") == "byte_level_bpe":
            training_library()
        needed = one.settings["data"].get("columns", ("text", "label"))
        require(
            not one.of_files or columns is None or set(needed) <= set(columns),
            f"The task {task} needs a column for each of {', '.join(needed)}.",
            columns=columns,
        )
        for mechanism in mechanisms if one.causal else ():
            kind, _ = ATTENTION[mechanism]
            require(
                getattr(kind, "can_be_causal", True),
                f"The task {task} is causal, and the mechanism is not.",
                mechanism=mechanism,
            )
        if not one.of_files:
            _generate_some(task if ":" in task else one.settings["data"]["train"][0])
        for probe in probes:
            require(
                _base_name(probe) == _base_name(task) and not one.of_files,
                "Runs are measured further on data of their task's generator.",
                task=task,
                probe=probe,
            )
            _generate_some(probe)
    for path in expanded([path for paths in files.values() for path in paths]):
        require(is_remote(path) or Path(path).is_file(), f"{path}: no such file.")


def _generate_some(name: str) -> None:
    """Generates one text of each part, for mistakes that a generator finds when it begins."""
    from keras_attn.training.named_sets import SETS_OF_TEXTS, named_set
    from keras_attn.training.run_settings import DataSettings

    sizes = dict.fromkeys(("train", "validation", "test"), 1)
    with contextlib.redirect_stdout(None):
        named_set(SETS_OF_TEXTS, [name], sizes)(DataSettings([name]))


class _Cell(NamedTuple):
    """A run: its folder, its settings in layers, and what it is called."""

    folder: Path
    layers: list[dict[str, Any]]
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        """All settings."""
        return functools.reduce(merged, self.layers)

    @property
    def config(self) -> Path:
        """File of the settings."""
        return self.folder.with_suffix(".yaml")

    def require_same(self) -> None:
        """Raises where the folder has a run with other settings."""
        if not (self.folder.exists() and self.config.exists()):
            return
        before, now = _leaves(read_yaml(self.config)), _leaves(self.settings)
        names = [name for name in before | now if before.get(name) != now.get(name)]
        require(
            not names,
            f"{self.folder} has a run with other settings: name another --out, or delete it.",
            before={name: before.get(name) for name in names},
            now={name: now.get(name) for name in names},
        )


def _leaves(settings: Any, name: str = "") -> dict[str, Any]:
    """Values of nested settings by their names, such as `data.train`."""
    if not isinstance(settings, Mapping):
        return {name: settings}
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= _leaves(value, f"{name}.{key}" if name else key)
    return found


def _is_done(cell: _Cell, watch: Callable[[str], None]) -> bool:
    """Trains what is not trained yet; returns whether it is."""
    done = cell.folder / _CELL_FILE
    cell.require_same()
    if not done.exists():
        _train(cell, watch)
    return done.exists()


def _pretrained_cells(cell: _Cell, task: ArenaTask, steps: int) -> list[_Cell]:
    """The run of masked tokens, and that of the task, which has its model and its vocabulary."""
    first, second = (
        cell.folder.with_name(f"{cell.folder.name}_{part}_{steps}") for part in ("masked", "after")
    )
    own, *given = cell.layers
    end = {"training": {"steps": steps, "max_minutes": None}}
    # Settings of the model that are the task's own are about its head.
    masked = [_without(own, ("model",)), dict(task.pretraining or {}), *given, end]
    kept = ("tokenizers", "attention")  # by the run that the second one starts from
    ours = [_without(own, kept), *(_without(layer, (*kept, "model")) for layer in given)]
    return [
        _Cell(first, masked, f"{cell.name}, masked tokens"),
        _Cell(second, [*ours, {"init": str(first)}], f"{cell.name}, pre-trained"),
    ]


def _without(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: settings[name] for name in settings if name not in names}


def _shown(
    cells: Sequence[_Cell], mechanism: str, probes: Sequence[str], watch: Callable[[str], None]
) -> dict[str, Any]:
    """The figures of the last run, those of a pre-training added."""
    *before, last = cells
    figures = _probed(last.folder / _CELL_FILE, probes, watch) | {"mechanism": mechanism}
    for cell in before:
        path = cell.folder / _CELL_FILE
        own = parse_json(path.read_text(), str(path))
        names = ("metric", "value", "steps", "seconds", "memory_mb")
        figures["pretraining"] = {name: own[name] for name in names}
    return figures


def _base_name(task: str) -> str:
    return task.partition(":")[0]


def _settings(
    task: str,
    mechanism: str,
    files: Mapping[str, Sequence[str]] | None,
    steps: int | None,
    minutes: float | None,
    seed: int,
) -> dict[str, Any]:
    base = ARENA_TASKS[_base_name(task)]
    data = dict(base.settings["data"])
    if base.of_files:
        data |= {name: list(paths) for name, paths in (files or {}).items() if paths}
    elif ":" in task:
        data["train"] = [task]
    training = {"steps": steps, "max_minutes": minutes, "seed": seed}
    given = {name: value for name, value in training.items() if value is not None}
    return {**base.settings, "data": data, "training": given, "attention": {"name": mechanism}}


def _train(cell: _Cell, watch: Callable[[str], None]) -> None:
    """Runs `keras-attn train` in a process of its own, and notes what came out."""
    folder, name, config = cell.folder, cell.name, cell.config
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_suffix(".log")
    write_text(config, yaml.safe_dump(cell.settings, sort_keys=False))
    watch(f"{name} …")
    # Another benchmark may train it.
    wait_for_writer(folder, lambda who: watch(f"{name}: {who} still trains it; waiting for it"))
    command = python_command("keras_attn", "train", "--config", str(config), "--out", str(folder))
    start = time.monotonic()
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(
            ending_with_parent([*command, "--resume"]),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=python_environment(TF_CPP_MIN_LOG_LEVEL="3"),
        )
        try:
            status = process.wait()
        except BaseException:  # also Control-C, after which the run can be continued
            process.terminate()
            process.wait()
            watch(f"{name}: interrupted; the same command goes on with it. Its log: {log}")
            raise
    if status:
        return
    figures = _figures(folder)
    figures["wall_seconds"] = round(time.monotonic() - start, 1)
    write_text(folder / _CELL_FILE, json.dumps(figures))
    watch(f"{name}: {figures['metric']} {figures['value']:.2f}, {figures['seconds']:.0f} s")


def _figures(folder: Path) -> dict[str, Any]:
    """What a finished run shows."""
    task = folder.parent.name
    metric, results = ARENA_TASKS[_base_name(task)].metric, {}
    if (folder / "results.json").exists():
        results = parse_json((folder / "results.json").read_text(), "results.json")
    else:  # of masked tokens, which are measured by validations alone
        with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
            found = [row["val_perplexity"] for row in csv.DictReader(file)]
        values = [float(value) for value in found if value]
        metric, results = "perplexity", {"perplexity": min(values)}
    with (folder / "timings.csv").open(encoding="utf-8", newline="") as file:
        timings = list(csv.DictReader(file))
    return {
        "task": task,
        "mechanism": folder.name,
        "metric": metric,
        "value": results[metric],
        "majority": _majority(results),
        "steps": int(timings[-1]["step"]),
        "seconds": float(timings[-1]["seconds"]),
        "memory_mb": float(timings[-1]["memory_mb"]),
        "probes": {},
    }


def _probed(file: Path, probes: Sequence[str], watch: Callable[[str], None]) -> dict[str, Any]:
    """The figures of a finished run, those of the probes that it has not been measured on added."""
    figures = parse_json(file.read_text(), str(file))
    missing = [probe for probe in probes if probe not in figures["probes"]]
    if missing:
        from keras_attn.tasks import open_task
        from keras_attn.training.measuring import evaluate
        from keras_attn.training.run_settings import DataSettings

        watch(f"{figures['task']} with {figures['mechanism']}: measuring on {len(missing)} more …")
        task = open_task(file.parent)
        for probe in missing:
            results = evaluate(task, DataSettings([probe]), [figures["metric"]])
            figures["probes"][probe] = results[figures["metric"]]
        write_text(file, json.dumps(figures))
    return figures | {"probes": {one: figures["probes"][one] for one in probes}}


def _majority(results: Mapping[str, Any]) -> float | None:
    """The accuracy of the most frequent label, from the table of labels."""
    counts = Counter({name: row["items"] for name, row in (results.get("labels") or {}).items()})
    if not counts:
        return None
    return 100 * counts.most_common(1)[0][1] / sum(counts.values())


def _error_in(log: Path) -> str:
    """The last line of a run that names an error, or else its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()] or ["no output"]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])
