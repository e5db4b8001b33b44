"""Reads the weights of a task from the variables of its export."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_attn.documents import read_json_object
from keras_attn.tasks.weights import require_finite
from keras_attn.validation import UserError, require

PLACES_FILE = "exported_weights.json"
"""File of a task in an export: the path of each weight and its place among the variables."""

_VARIABLE = "{}/.ATTRIBUTES/VARIABLE_VALUE"  # names of variables in a checkpoint
_VALUES, _SCALES = _VARIABLE.format("{}/values"), _VARIABLE.format("{}/scales")


def write_places(folder: Path, places: Mapping[str, str]) -> None:
    """Writes the file that `ExportedWeights` reads.

    Args:
        folder: The folder of the task, `VERSION/assets.extra/task`.
        places: For the path of each weight its place, such as "resources/3".
    """
    (folder / PLACES_FILE).write_text(json.dumps(places, indent=1) + "\n", "utf-8")


class ExportedWeights:
    """The weights of a task in an export; quantized ones are converted to the model's dtype.

    Args:
        folder: The folder of the task, `VERSION/assets.extra/task`.

    Attributes:
        arrays: Number of arrays.
        parameters: Number of values in all of them.

    Raises:
        UserError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / PLACES_FILE
        self._places = read_json_object(self._path)
        self._variables = folder.absolute().parents[1] / "variables"
        try:
            self._reader = tf.train.load_checkpoint(self._variables / "variables")
        except (ValueError, tf.errors.OpError) as error:
            raise self._damaged(error) from error
        self._shapes = self._reader.get_variable_to_shape_map()
        sizes = [self._size(name, shape) for name, shape in self._shapes.items()]
        stored = sum(path.stat().st_size for path in self._variables.glob("variables.data-*"))
        require(sum(sizes) <= stored, f"{self._variables} is damaged: its arrays exceed the files.")
        self.arrays = len(self._places)
        self.parameters = sum(math.prod(shape) for shape in self._shapes.values())

    def load(self, model: keras.Model) -> None:
        """Puts the weights into a model of the same layers.

        Raises:
            UserError: They are of another model, damaged, or not finite.
        """
        for weight, place in zip(model.weights, self._in_order(model), strict=True):
            array = self._read(place)
            require(
                array.shape == tuple(weight.shape),
                f"{self._path} is of another model: {weight.path} must be of shape "
                f"{tuple(weight.shape)}, and is of {array.shape}.",
            )
            weight.assign(array)
        require_finite(model.variables, f"{self._variables}: ")

    def _in_order(self, model: keras.Model) -> list[str]:
        """The places in the order of the model's weights."""
        paths = [weight.path for weight in model.weights]
        others = sorted(set(paths) ^ set(self._places))
        if others and _unnumbered(paths) == _unnumbered(self._places):
            return list(map(str, self._places.values()))
        for path in others[:1]:
            problem = f"it lacks {path}" if path in paths else f"the model has no {path}"
            raise UserError(f"{self._path} is of another model: {problem}.")
        return [str(self._places[path]) for path in paths]

    def _read(self, place: str) -> np.ndarray:
        plain, values, scales = (form.format(place) for form in (_VARIABLE, _VALUES, _SCALES))
        if plain in self._shapes:
            return self._tensor(plain)
        require(
            values in self._shapes, f"{self._path} is damaged: there is no variable.", place=place
        )
        numbers = self._tensor(values).astype("float32")
        return numbers * self._tensor(scales) if scales in self._shapes else numbers

    def _tensor(self, name: str) -> np.ndarray:
        try:
            return self._reader.get_tensor(name)
        except (ValueError, tf.errors.OpError) as error:
            raise self._damaged(error) from error

    def _size(self, name: str, shape: list[int]) -> int:
        """Least number of bytes."""
        return math.prod(shape) * (self._reader.get_variable_to_dtype_map()[name].size or 0)

    def _damaged(self, error: Exception) -> UserError:
        return UserError(f"{self._variables} is damaged: {str(error).splitlines()[0]}")


def _unnumbered(paths: Iterable[str]) -> list[str]:
    """Paths without the numbers that Keras gives layers without a name, different in each model."""
    return [re.sub(r"_\d+(?=/|$)", "", path) for path in paths]
