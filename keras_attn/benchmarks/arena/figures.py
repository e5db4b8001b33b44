"""Figures of a run of the arena: accuracy, time and memory, or its error."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.benchmarks.arena.tasks import arena_task
from keras_attn.documents import parse_json
from keras_attn.files import write_text


def figures_of(folder: Path) -> dict[str, Any]:
    """Reads what a finished run shows.

    Args:
        folder: The run's folder.
    """
    task = folder.parent.name
    metric, results = arena_task(task).metric, {}
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


def probed(file: Path, probes: Sequence[str], watch: Callable[[str], None]) -> dict[str, Any]:
    """Reads the figures of a finished run, and adds those of probes that it was not measured on.

    Args:
        file: File of the figures, in the run's folder.
        probes: Names of generated data.
        watch: Called with a line about what is being done.
    """
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


def error_in(log: Path) -> str:
    """Finds the last line of a run that names an error, or else its last line.

    Args:
        log: What the run printed.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()] or ["no output"]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])
