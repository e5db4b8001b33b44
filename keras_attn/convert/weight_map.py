"""Map of a model's weights to the tensors of a checkpoint."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import keras
import numpy as np

from keras_attn.validation import UserError, require

_SHOWN = 3


class Tensors(Protocol):
    """The tensors of a checkpoint.

    Attributes:
        path: File or folder, for error messages.
        shapes: The shape of every tensor, by name.
    """

    path: Path
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str) -> np.ndarray:
        """Reads a tensor as float32."""


class _Source(NamedTuple):
    """The source of a weight: tensors of one shape, and a function that makes its value."""

    weight: keras.Variable
    names: tuple[str, ...]
    shape: tuple[int, ...]
    make: Callable[..., np.ndarray]


class WeightMap:
    """Maps weights to tensors, and then copies them all.

    Every weight of the model must have a source and every tensor must be used exactly once, except
    those that are explicitly ignored.
    """

    def __init__(self) -> None:
        self._sources: list[_Source] = []
        self._ignored: list[str] = []
        self._kept: list[keras.Variable] = []

    def copy(self, weight: keras.Variable, name: str) -> None:
        """Maps a weight to a tensor without changes."""
        self._make(weight, (name,), weight.shape, lambda tensor: tensor)

    def copy_embedding(self, weight: keras.Variable, name: str, scale: float = 1.0) -> None:
        """Maps an embedding whose ids are one greater here because 0 is padding.

        Args:
            weight: The embedding, with one row more than the tensor.
            name: The tensor.
            scale: Factor of the tensor.
        """
        self.copy_rows(weight, name, range(-1, weight.shape[0] - 1), scale)

    def copy_rows(
        self,
        weight: keras.Variable,
        name: str,
        rows: Sequence[int],
        scale: float = 1.0,
        flat: bool = False,
    ) -> None:
        """Maps an embedding with different ids, or a number for each id.

        Args:
            weight: The weight, with a row for each id.
            name: The tensor.
            rows: The tensor's row for each of our rows, -1 for zeros; uses all of its rows.
            scale: Factor of the tensor.
            flat: Whether the tensor contains all values in one row.
        """
        rows = np.array(rows)
        shape = (int(rows.max()) + 1, *weight.shape[1:])

        def make(tensor: np.ndarray) -> np.ndarray:
            value = tensor.reshape(shape)[rows] * np.float32(scale)
            value[rows < 0] = 0
            return value

        self._make(weight, (name,), (1, *shape) if flat else shape, make)

    def keep(self, weight: keras.Variable) -> None:
        """Keeps the initial value of a weight."""
        self._kept.append(weight)

    def copy_linear(
        self, layer: keras.layers.Layer, *names: str, scales: tuple[float, ...] | None = None
    ) -> None:
        """Maps kernel and bias of a layer to linear modules of PyTorch.

        Args:
            layer: With `kernel` (inputs, units) and `bias`, which is None where they have none.
            *names: The modules in order, each with an equal number of the units.
            scales: Factors of the modules, 1 by default.
        """
        factors = np.float32(scales or [1.0] * len(names))

        def side_by_side(*tensors: np.ndarray) -> np.ndarray:
            return np.concatenate([t.T * f for t, f in zip(tensors, factors, strict=True)], axis=-1)

        for weight, kind in ((layer.kernel, "weight"), (layer.bias, "bias")):
            if weight is not None:
                *inputs, units = weight.shape
                shape = (units // len(names), *reversed(inputs))
                self._make(weight, tuple(f"{name}.{kind}" for name in names), shape, side_by_side)

    def copy_gru(
        self, cell: keras.layers.GRUCell, kernels: tuple[str, str], biases: tuple[str, str]
    ) -> None:
        """Maps a GRU to PyTorch's, whose gates are reset, update and candidate.

        Args:
            cell: A GRU with `reset_after`, as in PyTorch; its gates are update, reset and
                candidate.
            kernels: The tensors of input and state, each (gates, features).
            biases: The biases of input and state, each (gates,).
        """
        reset, update, candidate = np.arange(3 * cell.units).reshape(3, -1)
        order = np.concatenate([update, reset, candidate])
        for weight, name in zip((cell.kernel, cell.recurrent_kernel), kernels, strict=True):
            self._make(weight, (name,), weight.shape[::-1], lambda tensor: tensor[order].T)
        shape = cell.bias.shape[1:]
        self._make(cell.bias, biases, shape, lambda *tensors: np.stack(tensors)[:, order])

    def copy_conv1d(self, layer: keras.layers.Layer, name: str) -> None:
        """Maps kernel and bias to a `Conv1D` of transformers, which is not transposed."""
        self.copy(layer.kernel, f"{name}.weight")
        self.copy(layer.bias, f"{name}.bias")

    def copy_norm(self, layer: keras.layers.Layer, name: str) -> None:
        """Maps `gamma` and `beta` of a normalization to a module's weight and bias."""
        self.copy(layer.gamma, f"{name}.weight")
        self.copy(layer.beta, f"{name}.bias")

    def ignore(self, pattern: str) -> None:
        """Ignores tensors whose whole name matches a regular expression."""
        self._ignored.append(pattern)

    def _make(
        self,
        weight: keras.Variable,
        names: tuple[str, ...],
        shape: tuple[int, ...],
        make: Callable[..., np.ndarray],
    ) -> None:
        self._sources.append(_Source(weight, names, tuple(shape), make))

    def fill(
        self, model: keras.Model, tensors: Tensors, rename: Callable[[str], str] = lambda name: name
    ) -> None:
        """Copies the tensors into the weights.

        Args:
            model: The model; all of its weights must be in the map.
            tensors: The checkpoint.
            rename: Converts a tensor's name to its name in the map.

        Raises:
            UserError: Tensors are missing, unused or of another shape.
        """
        mapped = {id(weight) for weight in self._kept}
        mapped |= {id(source.weight) for source in self._sources}
        forgotten = [
            weight.path for weight in model.weights if weight.trainable and id(weight) not in mapped
        ]
        require(not forgotten, "The map must contain every weight.", forgotten=forgotten)
        original = {rename(name): name for name in tensors.shapes}
        require(
            len(original) == len(tensors.shapes),
            f"{tensors.path}: two tensors must not be mapped to the same weight.",
            tensors=sorted(set(tensors.shapes) - set(original.values()))[:_SHOWN],
        )
        self._check(tensors, original)
        for source in self._sources:
            read = [tensors.read(original[name]) for name in source.names]
            source.weight.assign(source.make(*read))

    def _check(self, tensors: Tensors, original: dict[str, str]) -> None:
        expected = {name: source.shape for source in self._sources for name in source.names}
        missing = [name for name in expected if name not in original]
        left_over = [
            found
            for name, found in original.items()
            if name not in expected and not any(re.fullmatch(one, name) for one in self._ignored)
        ]
        found = {name: tensors.shapes[original[name]] for name in expected if name in original}
        wrong = [
            f"{original[name]} {shape} instead of {expected[name]}"
            for name, shape in found.items()
            if shape != expected[name]
        ]
        parts = {"missing": missing, "left over": left_over, "of another shape": wrong}
        problems = [f"{what}: {_listed(names)}" for what, names in parts.items() if names]
        if problems:
            raise UserError(
                f"{tensors.path}: the tensors do not fit the model; {'; '.join(problems)}."
            )


def attention_parts(
    block: keras.layers.Layer,
) -> list[tuple[keras.layers.Layer, keras.layers.Layer]]:
    """The attention layers of a block in their order, each with its norm."""
    names = ("attention", "self_attention", "cross_attention")
    found = [name for name in names if hasattr(block, name)]
    return [(getattr(block, name), getattr(block, f"{name}_residual").norm) for name in found]


def _listed(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
