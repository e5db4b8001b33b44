"""Tensors of a checkpoint folder with one or several safetensors files."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np

from keras_attn.checkpoints import INDEX, WEIGHTS, require_weights
from keras_attn.documents import parse_json
from keras_attn.validation import UserError, require, require_one_of

_FLOATING = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
_LENGTH = 8  # bytes of the length of the header


class SafetensorsFolder:
    """The tensors in `model.safetensors`, or in the shards that its index names.

    Args:
        folder: The folder.

    Attributes:
        path: The folder, for error messages.
        shapes: The shape of every tensor, by name.

    Raises:
        UserError: A file is missing or damaged.
    """

    def __init__(self, folder: Path):
        self.path = folder
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._file_of: dict[str, Path] = {}
        index = require_weights(folder)
        for name in [WEIGHTS] if index is None else sorted(set(index.values())):
            self._open(folder / name)
        if index is not None:
            _check_index(folder, index, self._file_of)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Reads a tensor, or some of its rows, as float32.

        Nothing is mapped into memory, where pages that were read would stay.

        Args:
            name: The tensor.
            start: The first row.
            stop: The row after the last one; by default all rows are read.

        Raises:
            UserError: The dtype is not floating point, a value is not finite, or the file is
                damaged.
        """
        path, shape = self._file_of[name], self.shapes[name]
        dtype, offset = self._places[name]
        require_one_of(f"dtype of {name} in {path}", dtype, _FLOATING)
        kind = np.dtype(_FLOATING[dtype])
        if shape:
            stop = shape[0] if stop is None else stop
            offset += start * math.prod(shape[1:]) * kind.itemsize
            shape = (stop - start, *shape[1:])
        count = math.prod(shape)
        with path.open("rb") as file:
            file.seek(offset)
            tensor = np.fromfile(file, kind, count)
        require(len(tensor) == count, f"{path} is damaged: {name} is cut off.")
        tensor = tensor.astype(np.float32, copy=False).reshape(shape)
        if not np.isfinite(tensor.sum(dtype=np.float64)):  # without a mask of its size
            wrong = int(np.sum(~np.isfinite(tensor)))
            require(wrong == 0, f"{path}: {name} must be finite.", not_finite=wrong)
        return tensor

    def require_same(self, name: str, first: str) -> None:
        """Raises unless a tensor is a copy of another one.

        Raises:
            UserError: They differ.
        """
        same = np.array_equal(self.read(name), self.read(first))
        require(same, f"{self.path}: {name} must be the same as {first}.")

    @property
    def parameters(self) -> int:
        """Number of values in all tensors."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def _open(self, path: Path) -> None:
        for name, (dtype, shape, offset) in _header(path).items():
            earlier = self._file_of.get(name)
            require(earlier is None, f"{path}: {name!r} is also in {earlier}.")
            self._file_of[name] = path
            self.shapes[name] = shape
            self._places[name] = dtype, offset


def _header(path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """The dtype, the shape and the first byte of each tensor, by name."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        content = parse_json(file.read(length).decode(), str(path))
    content.pop("__metadata__", None)
    return {
        name: (one["dtype"], tuple(one["shape"]), _LENGTH + length + one["data_offsets"][0])
        for name, one in content.items()
    }


def _check_index(folder: Path, index: dict[str, str], file_of: dict[str, Path]) -> None:
    for name in sorted({*index, *file_of}):
        where, told = (file_of[name].name if name in file_of else None), index.get(name)
        if where != told:
            raise UserError(
                f"{folder}: the tensor {name!r} is in {where or 'no file'}, and by {INDEX} in "
                f"{told or 'none'}."
            )
