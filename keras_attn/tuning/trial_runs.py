"""Trials of a search, each a run in a process of its own."""

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
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.tuning.search_space import SearchSpace

RUN_FOLDER = "run"
SETTINGS_FILE = "settings.yaml"
LOG_FILE = "log.txt"
FAILURE_FILE = "failure.txt"
SUMMARY_FILE = "summary.json"
_PREFIX = "keras-attn: error: "
_INTERRUPTED = 130


class TrialRuns(keras_tuner.engine.base_tuner.BaseTuner):
    """A KerasTuner tuner whose trials are `keras-attn train`, in a process each.

    A trial that is out of memory or is killed does not end the search, and one that was interrupted
    continues from its last checkpoint when the search is resumed.

    Args:
        oracle: Chooses the trials.
        space: What is varied.
        settings: Nested settings that all trials share.
        directory: The folder of the search; what is in it is gone on with.
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
        super().__init__(
            oracle,
            keras_tuner_space(space),
            directory=str(directory),
            project_name="trials",
        )

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Runs a trial to its end, and returns the value for the oracle."""
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
            # KerasTuner's workers do not report to their chief why a trial failed.
            write_text(folder / FAILURE_FILE, str(error))
            raise
        summary = read_json(run / SUMMARY_FILE)
        return {self.oracle.objective.name: summary["value"]}


def train(run: Path, settings: Path, log: Path) -> None:
    """Trains in a process of its own, going on where an earlier one was cut short.

    Args:
        run: The run folder.
        settings: File of its settings.
        log: File that gets what the process says.

    Raises:
        keras_tuner.errors.FailedTrialError: It ended with an error, or was killed.
        KeyboardInterrupt: It was interrupted.
    """
    # Variables of the search are not for the training.
    environment = {
        name: value
        for name, value in python_environment().items()
        if not name.startswith("KERASTUNER_")
    }
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


def keras_tuner_space(space: SearchSpace) -> keras_tuner.HyperModel:
    """A stand-in for a HyperModel, by which KerasTuner learns what is varied."""

    class Declared(keras_tuner.HyperModel):
        def build(self, hp: keras_tuner.HyperParameters) -> None:
            space.draw(hp)

    return Declared()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix(_PREFIX) if lines else "no output"
