"""The arrays of a NumPy `.npz` file, never a pickle."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from keras_attn.validation import UserError, require

_DAMAGES = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


class NpzFile:
    """The floating-point arrays that `numpy.savez` has written.

    Args:
        path: The file.

    Attributes:
        path: The file, to be named in errors.
        shapes: The shape of every array, by name.

    Raises:
        UserError: There is no such file, it is damaged, or it holds something else; the message
            names it.
    """

    def __init__(self, path: Path):
        require(path.is_file(), f"{path}: no such file.")
        require(
            zipfile.is_zipfile(path), f"{path}: a whole .npz file of NumPy is expected, no pickle."
        )
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as arrays:
                self._arrays = {name: arrays[name] for name in arrays.files}
        except _DAMAGES as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{path} is damaged or holds pickles: {reason}") from error
        for name, array in self._arrays.items():
            require(
                getattr(array, "dtype", np.dtype(bytes)).kind == "f",
                f"{path}: {name} must be an array of floating-point numbers.",
            )
            require(bool(np.isfinite(array).all()), f"{path}: {name} must be finite.")
        self.shapes = {name: array.shape for name, array in self._arrays.items()}

    def read(self, name: str) -> np.ndarray:
        """Gives an array as float32."""
        return self._arrays[name].astype(np.float32)
