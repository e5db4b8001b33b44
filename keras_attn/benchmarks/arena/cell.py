"""A run of the arena: its folder, its settings, its training."""

import functools
import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from keras_attn.benchmarks.arena.figures import figures_of
from keras_attn.benchmarks.arena.tasks import ArenaTask
from keras_attn.documents import read_yaml
from keras_attn.files import wait_for_writer, write_text
from keras_attn.processes import python_command, python_environment
from keras_attn.recipes import merged
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.validation import require


class Cell(NamedTuple):
    """A run: its folder, its settings in layers, and what it is called.

    Attributes:
        folder: The run's folder.
        layers: Its settings, later ones before earlier ones.
        name: Its name in lines about it.
    """

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

    @property
    def log(self) -> Path:
        """File of what the run printed."""
        return self.folder.with_suffix(".log")

    @property
    def figures(self) -> Path:
        """File of what came out."""
        return self.folder / "arena.json"

    def is_done(self, watch: Callable[[str], None]) -> bool:
        """Trains what is not trained yet.

        Args:
            watch: Called with a line about what is being done.

        Returns:
            Whether the run is finished.

        Raises:
            UserError: The folder has a run with other settings.
        """
        self._require_same()
        if not self.figures.exists():
            _train(self, watch)
        return self.figures.exists()

    def _require_same(self) -> None:
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


def pretrained_cells(cell: Cell, task: ArenaTask, steps: int) -> list[Cell]:
    """Makes of a run one of masked tokens, and one that has its model and its vocabulary.

    Args:
        cell: The run without a pre-training.
        task: Its task.
        steps: Updates of the pre-training.
    """
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
        Cell(first, masked, f"{cell.name}, masked tokens"),
        Cell(second, [*ours, {"init": str(first)}], f"{cell.name}, pre-trained"),
    ]


def _train(cell: Cell, watch: Callable[[str], None]) -> None:
    """Runs `keras-attn train` in a process of its own, and notes what came out."""
    folder, name = cell.folder, cell.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_text(cell.config, yaml.safe_dump(cell.settings, sort_keys=False))
    watch(f"{name} …")
    # Another benchmark may train it.
    wait_for_writer(folder, lambda who: watch(f"{name}: {who} still trains it; waiting for it"))
    command = python_command(
        "keras_attn", "train", "--config", str(cell.config), "--out", str(folder)
    )
    start = time.monotonic()
    with cell.log.open("a", encoding="utf-8") as output:
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
            watch(f"{name}: interrupted; the same command goes on with it. Its log: {cell.log}")
            raise
    if status:
        return
    figures = figures_of(folder)
    figures["wall_seconds"] = round(time.monotonic() - start, 1)
    write_text(cell.figures, json.dumps(figures))
    watch(f"{name}: {figures['metric']} {figures['value']:.2f}, {figures['seconds']:.0f} s")


def _leaves(settings: Any, name: str = "") -> dict[str, Any]:
    """Values of nested settings by their names, such as `data.train`."""
    if not isinstance(settings, Mapping):
        return {name: settings}
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= _leaves(value, f"{name}.{key}" if name else key)
    return found


def _without(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: settings[name] for name in settings if name not in names}
