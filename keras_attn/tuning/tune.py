"""Search for settings with KerasTuner; each trial is a run of `keras-attn train`."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras_tuner
import yaml

from keras_attn.files import write_text
from keras_attn.models.presets import get_preset
from keras_attn.recipes import merged
from keras_attn.training.reporting.progress import say
from keras_attn.training.reporting.run_folder import CACHE_FOLDER, RunFolder
from keras_attn.training.resolving import check_metric, goal_of, require_fitting_task
from keras_attn.training.run_settings import RUN_FILE, RunSettings, flat, read_run_file
from keras_attn.training.state import metric_goal
from keras_attn.tuning.chief import led_by_the_chief
from keras_attn.tuning.oracles import make_oracle
from keras_attn.tuning.processes import tuning_role
from keras_attn.tuning.results import TrialResult, draw, print_table, results_of, write_csv
from keras_attn.tuning.search_space import SearchSpace
from keras_attn.tuning.space_check import check_space
from keras_attn.tuning.spaces import family_space
from keras_attn.tuning.trial_runs import RUN_FOLDER, TrialRuns
from keras_attn.tuning.tuning_settings import SEARCH_FILE, TuningSettings, recorded_search
from keras_attn.validation import UserError, require

BEST_FILE = "best.yaml"
TABLE_FILE = "trials.csv"
PICTURE_FILE = "trials.png"
_TRIALS = "trials"


def tune(
    out: str | Path,
    *layers: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    space: Mapping[str, Any] | None = None,
    tuning: TuningSettings | None = None,
    resume: bool = False,
) -> TrialResult | None:
    """Searches for the settings of a run.

    The folder contains `search.yaml` (description of the search), `trials/` (KerasTuner's files and
    the run of every trial), `trials.csv` (written after each trial), and at the end `trials.png`
    and `best.yaml`, for `keras-attn train --config`.

    Args:
        out: The folder of the search.
        *layers: Nested settings of all trials, as in run.yaml; they are not varied.
        config: Nested settings with lower priority than the layers and the search space.
        space: Entries of a `SearchSpace` that replace those of the family's default space.
        tuning: The numbers of the search.
        resume: Continue the search in the folder and keep its finished trials. Missing arguments
            keep their earlier values; only the numbers of the search may change.

    Returns:
        The best trial; `None` for one of several workers, which only runs trials.

    Raises:
        UserError: Settings or the folder are invalid, a setting is both given and varied, or every
            trial failed.
        WorkerLost: This is a worker, and its chief cannot be reached.
    """
    out = Path(out)
    recorded = recorded_search(out) if resume else {}
    named = any("preset" in layer for layer in layers)
    require(
        bool(recorded) or named or not resume,
        "The folder contains no search to resume.",
        out=str(out),
    )
    given = flat(functools.reduce(merged, layers, {}))
    if "attention" in given:  # only by its name
        given["attention.name"] = given["attention"]
    layers = (recorded.get("settings", {}), config or {}, *layers)
    tuning = tuning or TuningSettings(**recorded.get("tuning", {}))
    base = RunSettings.resolve(*layers)
    require(base.preset is not None, "A search needs a preset.", preset=base.preset)
    check_metric(base)
    if space is None and "space" in recorded:
        searched = SearchSpace(recorded["space"])
    else:
        both = sorted(SearchSpace(space or {}).places() & set(given))
        require(
            not both,
            "A setting must not be both given and varied by the space.",
            **{name: given[name] for name in both},
        )
        default = family_space(get_preset(base.preset).family).without(given)
        searched = default.restricted(space or {})
    require(
        bool(searched.names),
        "The search space must vary at least one setting.",
        space=searched.to_dict(),
    )
    settings = functools.reduce(merged, layers, {})
    check_space(searched, settings)
    require_fitting_task(base.task, base.data)
    search = {
        "settings": settings,
        "space": searched.to_dict(),
        "tuning": dataclasses.asdict(tuning),
    }
    make_tuner = functools.partial(_tuner, out, base, searched, settings, tuning)
    if tuning_role() == "worker":
        with led_by_the_chief(out / SEARCH_FILE, base.training.join_timeout):
            make_tuner().search()
        return None
    with RunFolder(out, resume, allowed=(SEARCH_FILE,)):
        _note(out, search, recorded)
        tuner = make_tuner()
        write = functools.partial(_write_table, out, tuner.oracle, searched)
        # Also in the chief, whose trials run in workers.
        tuner.oracle.on_trial_end = write
        tuner.search()
        write()
        return _conclude(out, tuner.oracle, searched, base)


def _note(out: Path, search: dict[str, Any], recorded: Mapping[str, Any]) -> None:
    """Writes the description of the search; when resumed, only its numbers may change."""
    for part in ("settings", "space"):
        require(
            part not in recorded or recorded[part] == search[part],
            f"A resumed search must have the same {part}.",
            folder=str(out),
        )
    write_text(out / SEARCH_FILE, yaml.safe_dump(search, sort_keys=False))


def _tuner(
    out: Path,
    base: RunSettings,
    space: SearchSpace,
    settings: Mapping[str, Any],
    tuning: TuningSettings,
) -> TrialRuns:
    limits = {
        "max_minutes": tuning.trial_minutes,
        "epochs": tuning.trial_epochs,
        "max_parameters": tuning.max_parameters,
    }
    limits = {name: value for name, value in limits.items() if value is not None}
    # Test texts must not influence the choice.
    data = {"test": [], "cache": base.data.cache or str(out / CACHE_FOLDER)}
    shared = merged(settings, {"training": limits, "data": data})
    metric = base.training.metric
    objective = keras_tuner.Objective(metric, metric_goal(metric, goal_of(base)))
    return TrialRuns(make_oracle(tuning, objective), space, shared, out)


def _write_table(out: Path, oracle: keras_tuner.Oracle, space: SearchSpace) -> None:
    results = results_of(oracle, space, out / _TRIALS)
    write_csv(results, oracle.objective.name, out / TABLE_FILE)


def _conclude(
    out: Path, oracle: keras_tuner.Oracle, space: SearchSpace, base: RunSettings
) -> TrialResult:
    """Prints the trials, and writes the picture and the settings of the best trial."""
    results, objective = results_of(oracle, space, out / _TRIALS), oracle.objective.name
    print_table(results, objective)
    best = results[0] if results else None
    if best is None or best.value is None:
        reasons = (
            ", ".join(dict.fromkeys(result.message for result in results)) or "no trial started"
        )
        raise UserError(f"All {len(results)} trials failed: {reasons}.")
    draw(results, objective, out / PICTURE_FILE)
    found = read_run_file(out / _TRIALS / f"trial_{best.number}" / RUN_FOLDER / RUN_FILE)
    # The time limit of a trial does not apply to the full training.
    limits = ("epochs", "steps", "max_minutes", "max_parameters")
    ends = {name: getattr(base.training, name) for name in limits}
    whole = {"training": ends, "data": {"test": base.data.test, "cache": base.data.cache}}
    RunSettings.resolve(merged(found, whole)).write(out / BEST_FILE)
    say(f"Best: trial {best.number}, {objective} {best.value:.4f}. To train with its settings:")
    say(f"  keras-attn train --config {out / BEST_FILE} --out RUN")
    return best
