"""Writes and validates the weights files of task folders."""

import math
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

import h5py
import keras
import numpy as np

from keras_attn.files import check_room
from keras_attn.reading import require_regular
from keras_attn.validation import UserError, require

# Errors that Keras and HDF5 raise for files that do not fit.
_BYTES_A_VALUE = 4  # a model is loaded, and trained, in float32
_BYTES_A_WEIGHT = 4096  # of its names and groups, at most
_KERAS = (OSError, RuntimeError, ValueError, KeyError, TypeError, UserWarning)


class WeightsFile:
    """An HDF5 file of `Model.save_weights`.

    Args:
        path: The file.

    Attributes:
        path: The file.
        arrays: Number of its arrays.
        parameters: Number of values in all of them.

    Raises:
        UserError: It is missing, no HDF5 or cut off, claims more than it holds, or refers to other
            files.
    """

    def __init__(self, path: Path) -> None:
        require_regular(path)
        require(h5py.is_hdf5(path), f"{path} is damaged: it is not an HDF5 file.")
        self.path = path
        self._shapes = _shapes(path)
        self.arrays = len(self._shapes)
        self.parameters = sum(math.prod(shape) for shape in self._shapes.values())

    def load(self, model: keras.Model) -> None:
        """Puts the weights into a model of the same layers.

        Raises:
            UserError: The file is of another model, or holds values that are not finite.
        """
        try:
            with warnings.catch_warnings():
                # Keras only warns about layers that it leaves as initialized.
                warnings.filterwarnings("error", "Skipping", UserWarning)
                model.load_weights(self.path)
        except _KERAS as error:
            # Keras names a layer, but of one that is reached by two ways not what is wrong with it.
            reason = self._difference(model) or _one_line(error)
            raise UserError(f"{self.path} is of another model: {reason}.") from error
        if self.arrays != len(model.weights):
            difference = self._difference(model)
            require(not difference, f"{self.path} is of another model: {difference}.")
        require_finite(model.variables, f"{self.path}: ")

    def _difference(self, model: keras.Model) -> str | None:
        """Describes the difference between the file and the model's own weights."""
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "own.weights.h5"
            model.save_weights(own)
            expected = _shapes(own)
        for name in sorted({*expected, *self._shapes}):
            shape, found = expected.get(name), self._shapes.get(name)
            if found is None:
                return f"it lacks {name}, of shape {shape}"
            if shape is None:
                return f"the model has no {name}"
            if shape != found:
                return f"{name} must be of shape {shape}, and is of {found}"
        return None


def save_weights(model: keras.Model, path: Path) -> None:
    """Writes a file for `WeightsFile`, if the disk has room for it.

    Raises:
        OSError: It has none.
    """
    optimizer = getattr(model, "optimizer", None)  # which is saved with a compiled model
    written = [*model.weights, *(optimizer.variables if optimizer else ())]
    values = sum(math.prod(variable.shape) for variable in written)
    check_room(path, _BYTES_A_VALUE * values + _BYTES_A_WEIGHT * len(written))
    model.save_weights(path)


def require_finite(variables: Iterable[keras.Variable], source: str = "") -> None:
    """Refuses weights that make every prediction meaningless.

    Args:
        variables: The weights.
        source: Beginning of error messages.

    Raises:
        UserError: A weight holds NaN or infinity; the message names it.
    """
    for variable in variables:
        if "float" not in keras.backend.standardize_dtype(variable.dtype):
            continue
        wrong = int(np.sum(~np.isfinite(np.asarray(variable, "float32"))))
        if wrong:
            name = getattr(variable, "path", None) or variable.name
            raise UserError(
                f"{source}the weights {name} have {wrong:,} values that are not finite."
            )


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array in a file, by its path there, but for those of an optimizer."""
    links: dict[str, object] = {}
    items: dict[str, object] = {}
    try:
        with h5py.File(path) as file:
            # Nothing may be raised from within these calls.
            file.visititems_links(links.__setitem__)
            file.visititems(items.__setitem__)
            arrays = {name: item for name, item in items.items() if isinstance(item, h5py.Dataset)}
            outside = [name for name, link in links.items() if not isinstance(link, h5py.HardLink)]
            outside += [name for name, item in arrays.items() if item.external or item.is_virtual]
            size = sum(item.nbytes for item in arrays.values())
            shapes = {name: item.shape for name, item in arrays.items() if _is_weight(name, item)}
    except _KERAS as error:
        raise UserError(f"{path} is damaged: {_one_line(error)}.") from error
    kinds = [name for name, item in arrays.items() if item.dtype.kind in "cOSU"]
    require(not kinds, f"{path} is damaged: weights must be real numbers.", arrays=kinds[:3])
    require(not outside, f"{path} is damaged: an array refers to elsewhere.", arrays=outside[:3])
    require(size <= path.stat().st_size, f"{path} is damaged: its arrays exceed the file.")
    return shapes


def _is_weight(name: str, item: h5py.Dataset) -> bool:
    return item.shape is not None and not name.startswith("optimizer/")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).strip("'\"").split()).removesuffix(".")[:300]
