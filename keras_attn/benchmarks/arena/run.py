"""Mechanisms by tasks for long sequences, each trained by a run of its own.

Implements `keras-attn benchmark arena`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.benchmarks.arena.cell import Cell, pretrained_cells
from keras_attn.benchmarks.arena.checks import check_plan
from keras_attn.benchmarks.arena.figures import error_in, probed
from keras_attn.benchmarks.arena.tasks import Plan, arena_task
from keras_attn.documents import parse_json


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
            several tasks, or a probe is not the task's; a generated part has no texts; a folder
            has a run with other settings.
    """
    end = {"steps": steps, "max_minutes": minutes, "seed": seed}
    training = {name: value for name, value in end.items() if value is not None}
    plan = Plan(
        tasks, mechanisms or (), files or {}, training, settings or {}, probes, pretrain_steps
    )
    check_plan(plan)
    for task in tasks:
        for mechanism in plan.mechanisms_of(task):
            folder = Path(out) / task.replace("/", "-") / mechanism
            cells = [Cell(folder, plan.layers(task, mechanism), f"{task} with {mechanism}")]
            if pretrain_steps:
                cells = pretrained_cells(cells[0], arena_task(task), pretrain_steps)
            failed = next((cell for cell in cells if not cell.is_done(watch)), None)
            if failed is None:
                yield _shown(cells, mechanism, probes, watch)
            else:
                yield {"task": task, "mechanism": mechanism, "error": error_in(failed.log)}


def _shown(
    cells: Sequence[Cell], mechanism: str, probes: Sequence[str], watch: Callable[[str], None]
) -> dict[str, Any]:
    """The figures of the last run, those of a pre-training added."""
    *before, last = cells
    figures = probed(last.figures, probes, watch) | {"mechanism": mechanism}
    for cell in before:
        own = parse_json(cell.figures.read_text(), str(cell.figures))
        names = ("metric", "value", "steps", "seconds", "memory_mb")
        figures["pretraining"] = {name: own[name] for name in names}
    return figures
