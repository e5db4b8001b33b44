"""Results of a search: a table, a file, a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from keras_attn.files import replaced_file
from keras_attn.training.reporting.progress import say
from keras_attn.training.reporting.recorder import write_table
from keras_attn.tuning.search_space import SearchSpace
from keras_attn.tuning.trial_runs import FAILURE_FILE

_MOST_ROWS = 20
_LONGEST_LINE = 1_000  # of a log


@dataclass(frozen=True)
class TrialResult:
    """A trial.

    Attributes:
        number: Its number in KerasTuner.
        status: `"COMPLETED"`, `"FAILED"` or another status of KerasTuner.
        value: The value of the objective, or None.
        values: The values of its settings by name.
        message: Reason of its failure, in one line.
    """

    number: str
    status: str
    value: float | None
    values: dict[str, Any]
    message: str = ""


def results_of(oracle: Any, space: SearchSpace, folder: Path) -> list[TrialResult]:
    """Returns the trials of a KerasTuner oracle, best first, those without a value last.

    Args:
        oracle: The oracle, during or after its search.
        space: The search space.
        folder: The folder of its trials, with the reasons of failures.
    """
    results = []
    for trial in oracle.trials.values():
        done = trial.status == "COMPLETED"
        failure = folder / f"trial_{trial.trial_id}" / FAILURE_FILE
        results.append(
            TrialResult(
                trial.trial_id,
                trial.status,
                trial.score if done else None,
                space.plain(trial.hyperparameters.values),
                failure.read_text(encoding="utf-8") if failure.is_file() and not done else "",
            )
        )
    sign = -1 if oracle.objective.direction == "max" else 1
    return sorted(results, key=lambda r: (r.value is None, sign * (r.value or 0.0)))


def print_table(results: Sequence[TrialResult], objective: str) -> None:
    """Prints the best trials, and the number of failures for each reason."""
    table = Table(box=None)
    for name in ("trial", objective, *_names(results)):
        # One word per line, so that many columns fit.
        table.add_column(name.rpartition(".")[2].replace("_", "\n"), overflow="fold")
    for result in results[:_MOST_ROWS]:
        if result.value is not None:
            cells = (_shown(result.values.get(name)) for name in _names(results))
            table.add_row(result.number, f"{result.value:.4f}", *cells)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _LONGEST_LINE
    console.print(table)
    for result in results:
        if result.value is None and result.message:
            say(f"trial {result.number} {result.status.lower()}: {result.message}")


def write_csv(results: Sequence[TrialResult], objective: str, path: Path) -> None:
    """Writes all trials to a file."""
    rows = (
        {"trial": r.number, "status": r.status, objective: r.value, "message": r.message} | r.values
        for r in results
    )
    write_table(path, ["trial", "status", objective, *_names(results), "message"], rows)


def draw(results: Sequence[TrialResult], objective: str, path: Path) -> None:
    """Draws the objective against each varied setting, and over the trials.

    Args:
        results: The trials.
        objective: Name of the objective.
        path: PNG file to write.
    """
    figure = _figure(results, objective)
    with replaced_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def _figure(results: Sequence[TrialResult], objective: str) -> Any:
    from matplotlib.figure import Figure

    done = [result for result in results if result.value is not None]
    panels = [*_names(done), "trial"]
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axis, name in zip(axes.flat, panels, strict=False):
        xs = [int(r.number) if name == "trial" else r.values.get(name) for r in done]
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)
        axis.plot(xs if numeric else [str(x) for x in xs], [r.value for r in done], "o", alpha=0.7)
        axis.set_xlabel(name)
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel(objective)
    return figure


def _names(results: Sequence[TrialResult]) -> list[str]:
    return list(dict.fromkeys(name for result in results for name in result.values))


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
