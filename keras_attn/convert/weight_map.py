"""Which tensor of a checkpoint goes into which weight of a model."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import keras
import numpy as np

from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.validation import UserError, require

_SHOWN = 3


@dataclass(frozen=True)
class _Source:
    """What a weight is made of: tensors side by side along its last axis.

    With `rows`, a tensor's row for each row of the weight, they are taken in that order, -1 being a
    row of zeros, which the checkpoint has not. A `flat` tensor has all of them in one row.
    `scales` are factors of the tensors, 1 by default.
    """

    weight: keras.Variable
    names: tuple[str, ...]
    transposed: bool = False
    scales: tuple[float, ...] | None = None
    rows: Sequence[int] | None = None
    flat: bool = False

    def shape(self) -> tuple[int, ...]:
        """The shape of each tensor."""
        *first, last = self.weight.shape
        shape = (*first, last // len(self.names))
        if self.rows is not None:
            shape = (max(self.rows) + 1, *shape[1:])
        if self.flat:
            shape = (1, *shape)
        return shape[::-1] if self.transposed else shape

    def value(self, read: Callable[[str], np.ndarray]) -> np.ndarray:
        tensors = [read(name) for name in self.names]
        if self.scales is not None:
            pairs = zip(tensors, self.scales, strict=True)
            tensors = [tensor * np.float32(scale) for tensor, scale in pairs]
        tensors = [tensor.T for tensor in tensors] if self.transposed else tensors
        value = np.concatenate(tensors, axis=-1)
        if self.flat:
            value = value[0]
        if self.rows is not None:
            rows = np.array(self.rows)
            value = value[rows]
            value[rows < 0] = 0
        return value


class WeightMap:
    """Collects where each weight comes from, and then copies them all.

    Every weight of the model must have a source and every tensor a place, once; what is left out
    on purpose is named.
    """

    def __init__(self) -> None:
        self._sources: list[_Source] = []
        self._ignored: list[str] = []
        self._kept: list[keras.Variable] = []

    def copy(self, weight: keras.Variable, name: str) -> None:
        """Has a weight copied as it is."""
        self._sources.append(_Source(weight, (name,)))

    def copy_embedding(self, weight: keras.Variable, name: str, scale: float = 1.0) -> None:
        """Has an embedding copied whose ids are one greater here, 0 being padding.

        Args:
            weight: The embedding, with one row more than the tensor.
            name: The tensor.
            scale: Its factor.
        """
        rows = range(-1, weight.shape[0] - 1)
        self._sources.append(_Source(weight, (name,), rows=rows, scales=(scale,)))

    def copy_rows(
        self, weight: keras.Variable, name: str, rows: Sequence[int], flat: bool = False
    ) -> None:
        """Has an embedding copied whose ids are others here, or a number for each id.

        Args:
            weight: The weight, with a row for each id.
            name: The tensor.
            rows: The tensor's row for each of ours, -1 for one of zeros; together all of its rows.
            flat: Whether the tensor holds all of them in one row.
        """
        self._sources.append(_Source(weight, (name,), rows=rows, flat=flat))

    def keep(self, weight: keras.Variable) -> None:
        """Leaves a weight as it is."""
        self._kept.append(weight)

    def copy_linear(
        self, layer: keras.layers.Layer, *names: str, scales: tuple[float, ...] | None = None
    ) -> None:
        """Has kernel and bias of a layer copied from linear modules of PyTorch.

        Args:
            layer: With `kernel` (inputs, units) and `bias`, which is None where they have none.
            *names: The modules, of which each has an equal share of the units, in this order.
            scales: Their factors, 1 by default.
        """
        kernels = tuple(f"{name}.weight" for name in names)
        self._sources.append(_Source(layer.kernel, kernels, transposed=True, scales=scales))
        if layer.bias is not None:
            biases = tuple(f"{name}.bias" for name in names)
            self._sources.append(_Source(layer.bias, biases, scales=scales))

    def copy_conv1d(self, layer: keras.layers.Layer, name: str) -> None:
        """Has kernel and bias copied from a `Conv1D` of transformers, which is not transposed."""
        self.copy(layer.kernel, f"{name}.weight")
        self.copy(layer.bias, f"{name}.bias")

    def copy_norm(self, layer: keras.layers.Layer, name: str) -> None:
        """Has `gamma` and `beta` of a normalisation copied from a module's weight and bias."""
        self.copy(layer.gamma, f"{name}.weight")
        self.copy(layer.beta, f"{name}.bias")

    def ignore(self, pattern: str) -> None:
        """Leaves out tensors whose whole name a regular expression matches."""
        self._ignored.append(pattern)

    def fill(
        self,
        model: keras.Model,
        tensors: SafetensorsFolder,
        rename: Callable[[str], str] = lambda name: name,
    ) -> None:
        """Copies the tensors into the weights.

        Args:
            model: The model, of which every weight must be in the map.
            tensors: The checkpoint.
            rename: From a tensor's name to the one that the map knows it by.

        Raises:
            UserError: Tensors are missing, left over or of another shape; the message names them.
        """
        mapped = {id(weight) for weight in self._kept}
        mapped |= {id(source.weight) for source in self._sources}
        forgotten = [
            weight.path for weight in model.weights if weight.trainable and id(weight) not in mapped
        ]
        require(not forgotten, "The map must hold every weight.", forgotten=forgotten)
        original = {rename(name): name for name in tensors.shapes}
        require(
            len(original) == len(tensors.shapes),
            f"{tensors.folder}: two tensors must not have the same meaning.",
            tensors=sorted(set(tensors.shapes) - set(original.values()))[:_SHOWN],
        )
        self._check(tensors, original)
        for source in self._sources:
            source.weight.assign(source.value(lambda name: tensors.read(original[name])))

    def _check(self, tensors: SafetensorsFolder, original: dict[str, str]) -> None:
        expected = {name: source.shape() for source in self._sources for name in source.names}
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
                f"{tensors.folder}: the tensors do not fit the model; {'; '.join(problems)}."
            )


def _listed(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
