"""Trials of a search, each a separate run in its own process."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras_tuner
import yaml

from keras_attn.documents import read_json
from keras_attn.files import write_text
from keras_attn.processes import python_command, python_environment
from keras_attn.recipes import merged
from keras_attn.training.reporting.run_folder import SUMMARY_FILE
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.tuning.search_space import SearchSpace

RUN_FOLDER = "run"
SETTINGS_FILE = "settings.yaml"
LOG_FILE = "log.txt"
FAILURE_FILE = "failure.txt"
_PREFIX = "keras-attn: error: "
_INTERRUPTED = 130


class TrialRuns(keras_tuner.engine.base_tuner.BaseTuner):
    """A KerasTuner tuner whose trials are processes of `keras-attn train`.

    A trial that runs out of memory or is killed does not affect the search. An interrupted trial
    continues from its last checkpoint when the search is resumed.

    Args:
        oracle: Chooses the trials.
        space: The search space.
        settings: Nested settings of all trials.
        directory: The folder of the search, which is resumed if it contains one.
    """

    def __init__(
        self,
        oracle: keras_tuner.Oracle,
        space: SearchSpace,
        settings: Mapping[str, Any],
        directory: Path,
    ) -> None:
        self._space = space
        self._settings = dict(settings)
        # KerasTuner calls it once, for the search space.
        super().__init__(oracle, space.draw, directory=str(directory), project_name="trials")

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Runs a trial, and returns the value of the objective."""
        folder = Path(self.get_trial_dir(trial.trial_id))
        settings = merged(self._settings, self._space.draw(trial.hyperparameters))
        epochs = trial.hyperparameters.values.get("tuner/epochs")
        if epochs is not None:
            settings = merged(settings, {"training": {"epochs": epochs}})
        run = folder / RUN_FOLDER
        write_text(folder / SETTINGS_FILE, yaml.safe_dump(settings, sort_keys=False))
        try:
            train(run, folder / SETTINGS_FILE, folder / LOG_FILE)
        except keras_tuner.errors.FailedTrialError as error:
            # KerasTuner's workers do not report the reason of a failure to their chief.
            write_text(folder / FAILURE_FILE, str(error))
            raise
        summary = read_json(run / SUMMARY_FILE)
        return {self.oracle.objective.name: summary["value"]}


def train(run: Path, settings: Path, log: Path) -> None:
    """Trains in a separate process, and continues an interrupted run.

    Args:
        run: The run folder.
        settings: File of its settings.
        log: File for the output of the process.

    Raises:
        keras_tuner.errors.FailedTrialError: It exited with an error, or was killed.
        KeyboardInterrupt: It was interrupted.
    """
    # The training must not see the variables of the search.
    variables = python_environment().items()
    environment = {name: value for name, value in variables if not name.startswith("KERASTUNER_")}
    command = python_command("keras_attn", "train", "--out", str(run))
    command += ["--config", str(settings), "--resume"]
    with log.open("ab") as file:
        status = subprocess.run(
            ending_with_parent(command), stdout=file, stderr=subprocess.STDOUT, env=environment
        ).returncode
    if status == 0:
        return
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status < 0:
        reason = f"killed by signal {-status}" + (", out of memory?" if status == -9 else "")
    else:
        reason = _last_line(log)
    raise keras_tuner.errors.FailedTrialError(reason)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix(_PREFIX) if lines else "no output"
