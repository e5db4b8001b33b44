"""Arrays of a NumPy `.npz` file, without pickles."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from keras_attn.validation import UserError, require

_DAMAGES = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


class NpzFile:
    """Floating-point arrays written by `numpy.savez`.

    Args:
        path: The file.

    Attributes:
        path: The file, for error messages.
        shapes: The shape of every array, by name.

    Raises:
        UserError: The file is missing or damaged, or contains something else.
    """

    def __init__(self, path: Path):
        require(path.is_file(), f"{path}: no such file.")
        require(zipfile.is_zipfile(path), f"{path}: expected a NumPy .npz file without pickles.")
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as arrays:
                self._arrays = {name: arrays[name] for name in arrays.files}
        except _DAMAGES as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{path} is damaged or contains pickles: {reason}") from error
        for name, array in self._arrays.items():
            require(
                getattr(array, "dtype", np.dtype(bytes)).kind == "f",
                f"{path}: {name} must be an array of floating-point numbers.",
            )
            require(bool(np.isfinite(array).all()), f"{path}: {name} must be finite.")
        self.shapes = {name: array.shape for name, array in self._arrays.items()}

    def read(self, name: str) -> np.ndarray:
        """Returns an array as float32."""
        return self._arrays[name].astype(np.float32)
