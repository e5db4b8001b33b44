"""Checkpoints: every variable in a safetensors file, the position in a JSON file beside it."""

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from keras_attn.documents import read_json
from keras_attn.files import remove_unfinished, replaced_folder
from keras_attn.validation import UserError, require

ARRAYS_FILE = "state.safetensors"
STATE_FILE = "state.json"
BEST_FOLDER = "best"
_FORMAT = 1
_MODEL = "model"
_OPTIMIZER = "optimizer"


def model_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Every variable of a model, states of random generators included, by number and path."""
    return _named(_MODEL, model.variables)


def optimizer_arrays(optimizer: keras.optimizers.Optimizer) -> dict[str, np.ndarray]:
    """Every variable of an optimizer, by number and path."""
    return _named(_OPTIMIZER, optimizer.variables)


def assign_model_arrays(model: keras.Model, arrays: dict[str, np.ndarray]) -> None:
    """Gives a model the weights of a checkpoint.

    Args:
        model: The model, built.
        arrays: Arrays by name, such as those of `average_checkpoints`: one for each variable of the
            model, in the order of the names that begin with "model/"; others are ignored.

    Raises:
        UserError: The arrays do not fit the model.

    Examples:
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
        >>> kernel = np.array([[1.0], [2.0]], "float32")
        >>> assign_model_arrays(model, {"model/00000/dense/kernel": kernel})
        >>> float(model(np.array([[10.0, 3.0]]))[0, 0])
        16.0
    """
    _assign(_MODEL, model.variables, arrays)


def assign_optimizer_arrays(
    optimizer: keras.optimizers.Optimizer, arrays: dict[str, np.ndarray]
) -> None:
    """Assigns arrays from `optimizer_arrays`; UserError if they do not fit."""
    _assign(_OPTIMIZER, optimizer.variables, arrays)


def write_checkpoint(
    folder: str | Path, arrays: dict[str, np.ndarray], state: dict[str, Any]
) -> None:
    """Writes a checkpoint folder, completely or not at all.

    Args:
        folder: Its final name; an existing folder is replaced.
        arrays: Arrays by name.
        state: Plain values for the JSON file.
    """
    folder = Path(folder)
    with replaced_folder(folder) as temporary:
        try:
            save_file(arrays, temporary / ARRAYS_FILE)
        except SafetensorError as error:
            raise UserError(f"The checkpoint {folder} cannot be written: {error}.") from error
        digest = _file_digest(temporary / ARRAYS_FILE, flush=True)
        digests = {ARRAYS_FILE: digest, STATE_FILE: _json_digest(state)}
        content = {"format": _FORMAT, "sha256": digests, "state": state}
        with (temporary / STATE_FILE).open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())


def read_checkpoint(folder: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and state of a checkpoint folder, verified.

    Raises:
        UserError: A file is missing, unreadable or changed.
    """
    folder = Path(folder)
    try:
        content = _read_state(folder)
        digests, state = content["sha256"], content["state"]
        require(
            content["format"] == _FORMAT,
            f"The checkpoint {folder} must have format {_FORMAT}.",
            format=content["format"],
        )
        if digests[STATE_FILE] != _json_digest(state):
            raise UserError(f"The checkpoint {folder} is damaged: {STATE_FILE} was changed.")
        if digests[ARRAYS_FILE] != _file_digest(folder / ARRAYS_FILE):
            raise UserError(f"The checkpoint {folder} is damaged: {ARRAYS_FILE} was changed.")
        return load_file(folder / ARRAYS_FILE), state
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"The checkpoint {folder} is damaged: {error!r}.") from error


def average_checkpoints(folders: Sequence[str | Path]) -> dict[str, np.ndarray]:
    """Averages the model's weights over several checkpoints.

    Means are computed in float64 and rounded once. States of random generators come from the last
    folder.

    Args:
        folders: Checkpoint folders of one run, the newest last.

    Returns:
        The averages by name, as `assign_model_arrays` takes them.

    Raises:
        UserError: No folder, a damaged one, or models that differ.

    Examples:
        >>> checkpoints = Checkpoints("runs/demo/checkpoints")
        >>> for step, value in ((100, 1.0), (200, 3.0)):
        ...     weights = {"model/00000/dense/kernel": np.full(2, value)}
        ...     folder = checkpoints.write(step, weights, {}, milestone=True)
        >>> average_checkpoints(checkpoints.milestones())
        {'model/00000/dense/kernel': array([2., 2.])}
    """
    require(len(folders) > 0, "At least one checkpoint must be given.", folders=list(folders))
    totals, arrays = [], {}
    for folder in folders:
        everything, _ = read_checkpoint(folder)
        arrays = {
            name: everything[name] for name in sorted(everything) if name.startswith(_MODEL + "/")
        }
        # By their order: another process may have given the same variables other paths.
        if totals and [array.shape for array in arrays.values()] != [t.shape for t in totals]:
            raise UserError(f"The checkpoint {folder} is of another model than {folders[0]}.")
        wide = [array.astype(np.float64) for array in arrays.values()]
        totals = [t + w for t, w in zip(totals, wide, strict=True)] if totals else wide
    return {
        name: (total / len(folders)).astype(array.dtype) if _floating(array) else array
        for (name, array), total in zip(arrays.items(), totals, strict=True)
    }


class Checkpoint(NamedTuple):
    """A checkpoint that was read.

    Attributes:
        folder: Its folder.
        arrays: The variables of model and optimizer, by number and path.
        state: The values of a `TrainingState`.
    """

    folder: Path
    arrays: dict[str, np.ndarray]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run, folders such as `step-00001234`.

    Args:
        folder: Their folder; made if missing. What an interrupted write left is removed.
        keep: How many milestones to keep. The newest two of all are always kept.
        say: Receives lines for the user.
        writes: Whether this process writes the run, or only reads it.

    Examples:
        >>> checkpoints = Checkpoints("runs/demo/checkpoints")
        >>> weights = {"model/00000/dense/kernel": np.ones((2, 3), "float32")}
        >>> folder = checkpoints.write(100, weights, {"epoch": 1}, milestone=True)
        >>> newest = checkpoints.latest()
        >>> newest.folder.name, newest.state["epoch"]
        ('step-00000100', 1)
    """

    def __init__(
        self,
        folder: str | Path,
        keep: int = 2,
        say: Callable[[str], None] = print,
        writes: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self._keep = keep
        self.say = say
        self._writes = writes
        if writes:
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_unfinished(self.folder)

    def folders(self) -> list[Path]:
        """All checkpoint folders, the newest last."""
        found = self.folder.glob("step-*")
        names = [path for path in found if re.fullmatch(r"step-\d{8,}", path.name)]
        return sorted(names, key=_step)

    def milestones(self) -> list[Path]:
        """The checkpoints made at validations, the newest last."""
        return [path for path in self.folders() if _is_milestone(path)]

    def write(
        self, step: int, arrays: dict[str, np.ndarray], state: dict[str, Any], milestone: bool
    ) -> Path:
        """Writes the checkpoint of a step and removes those that are no longer needed."""
        folder = self.folder / f"step-{step:08d}"
        write_checkpoint(folder, arrays, {**state, "milestone": milestone})
        kept = {*self.milestones()[-self._keep :], *self.folders()[-2:]}
        for old in self.folders():
            if old not in kept:
                shutil.rmtree(old, ignore_errors=True)
        return folder

    def latest(self, at_most: float = math.inf) -> Checkpoint | None:
        """The newest sound checkpoint, or `None` without any.

        Damaged ones are reported, and renamed to `damaged-…` if a sound one is left.

        Args:
            at_most: The last step that counts.

        Raises:
            UserError: There are checkpoints, and all are damaged.
        """
        damaged = []
        for folder in reversed(self.folders()):
            if _step(folder) > at_most:
                continue
            try:
                arrays, state = read_checkpoint(folder)
            except UserError as error:
                self.say(f"{error} Falling back to the checkpoint before.")
                damaged.append(folder)
                continue
            for other in damaged if self._writes else []:
                aside = other.with_name(f"damaged-{other.name}")
                shutil.rmtree(aside, ignore_errors=True)
                other.rename(aside)
            return Checkpoint(folder, arrays, state)
        if damaged:
            raise UserError(f"No sound checkpoint is left in {self.folder}.")
        return None


def _step(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        return read_json(folder / STATE_FILE)
    except UserError as error:
        raise UserError(f"The checkpoint {folder} is damaged: {error}") from error


def _is_milestone(folder: Path) -> bool:
    try:
        return bool(_read_state(folder)["state"]["milestone"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _named(kind: str, variables: Iterable[keras.Variable]) -> dict[str, np.ndarray]:
    # The number keeps equal paths apart and the order; the path is for readers.
    return {
        f"{kind}/{number:05d}/{variable.path}": np.array(variable.value.numpy(), order="C")
        for number, variable in enumerate(variables)
    }


def _assign(kind: str, variables: Sequence[keras.Variable], arrays: dict[str, np.ndarray]) -> None:
    names = sorted(name for name in arrays if name.startswith(kind + "/"))
    if len(names) != len(variables):
        raise UserError(
            f"The checkpoint must hold the {kind}'s {len(variables)} variables. "
            f"Received: {len(names)} arrays."
        )
    for name, variable in zip(names, variables, strict=True):
        array = arrays[name]
        same = tuple(variable.shape) == array.shape and variable.dtype == array.dtype.name
        if not same:
            raise UserError(
                f"The checkpoint does not fit the {kind}: {variable.path} is {variable.dtype} "
                f"{tuple(variable.shape)}. Received: {name}, {array.dtype} {array.shape}."
            )
    for name, variable in zip(names, variables, strict=True):
        variable.assign(arrays[name])


def _floating(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _file_digest(path: Path, flush: bool = False) -> str:
    with path.open("r+b" if flush else "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if flush:
            os.fsync(file.fileno())
    return digest


def _json_digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
