"""Map of a model's weights to the tensors of a checkpoint."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import keras
import numpy as np
import tensorflow as tf

from keras_attn.validation import UserError, require

_SHOWN = 3
_CHUNK = 1 << 21  # most values of a table in memory besides the weight itself


class Tensors(Protocol):
    """The tensors of a checkpoint.

    Attributes:
        path: File or folder, for error messages.
        shapes: The shape of every tensor, by name.
    """

    path: Path
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Reads a tensor, or its rows from `start` to before `stop`, as float32."""


class _Source(NamedTuple):
    """The source of weights: tensors of one shape, and functions that make one of the other."""

    weights: tuple[keras.Variable, ...]
    names: tuple[str, ...]
    shape: tuple[int, ...]
    make: Callable[..., Sequence[np.ndarray]]
    split: Callable[..., Sequence[np.ndarray]]


class WeightMap:
    """Maps weights to tensors, and then copies them all, in either direction.

    Every weight of the model must have a source and every tensor must be used exactly once, except
    those that are explicitly ignored.
    """

    def __init__(self) -> None:
        self._sources: list[_Source] = []
        self._ignored: list[str] = []
        self._kept: list[keras.Variable] = []
        self._tables: dict[int, tuple[np.ndarray, float]] = {}

    def copy(self, weight: keras.Variable, name: str) -> None:
        """Maps a weight to a tensor without changes."""
        self._make(weight, (name,), weight.shape, _same, lambda value: [value])

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
        written = (1, *shape) if flat else shape

        def make(tensor: np.ndarray) -> np.ndarray:
            value = tensor.reshape(shape)[rows] * np.float32(scale)
            value[rows < 0] = 0
            return value

        def split(value: np.ndarray) -> list[np.ndarray]:
            tensor = np.zeros(shape, value.dtype)
            tensor[rows[rows >= 0]] = value[rows >= 0] / np.float32(scale)
            return [tensor.reshape(written)]

        self._make(weight, (name,), written, make, split)
        if not flat:
            self._tables[id(weight)] = rows, scale

    def keep(self, weight: keras.Variable) -> None:
        """Keeps the initial value of a weight."""
        self._kept.append(weight)

    def copy_linear(
        self,
        layer: keras.layers.Layer,
        *names: str,
        scales: tuple[float, ...] | None = None,
        bias: bool = True,
    ) -> None:
        """Maps kernel and bias of a layer to linear modules of PyTorch.

        Args:
            layer: With `kernel` (inputs, units) and `bias`, which is None where they have none.
            *names: The modules in order, each with an equal number of the units.
            scales: Factors of the modules, 1 by default.
            bias: Whether the modules have biases; that of the layer keeps its value if not.
        """
        factors = np.float32(scales or [1.0] * len(names))

        def side_by_side(*tensors: np.ndarray) -> np.ndarray:
            scaled = (t if f == 1 else t * f for t, f in zip(tensors, factors, strict=True))
            return np.concatenate([tensor.T for tensor in scaled], axis=-1)

        def apart(value: np.ndarray) -> list[np.ndarray]:
            parts = np.split(value, len(names), axis=-1)
            return [part.T / factor for part, factor in zip(parts, factors, strict=True)]

        for weight, kind in ((layer.kernel, "weight"), (layer.bias, "bias")):
            if weight is layer.bias and weight is not None and not bias:
                self.keep(weight)
            elif weight is not None:
                *inputs, units = weight.shape
                shape = (units // len(names), *reversed(inputs))
                modules = tuple(f"{name}.{kind}" for name in names)
                self._make(weight, modules, shape, side_by_side, apart)

    def copy_mean(self, layer: keras.layers.Layer, *names: str) -> None:
        """Maps a layer to linear modules of PyTorch whose outputs are averaged.

        Args:
            layer: With `kernel` (inputs, units) and `bias`; each module has an equal number of its
                inputs.
            *names: The modules in the order of the inputs.
        """
        inputs, units = layer.kernel.shape
        count = len(names)
        self._make(
            layer.kernel,
            tuple(f"{name}.weight" for name in names),
            (units, inputs // count),
            lambda *tensors: np.concatenate([tensor.T for tensor in tensors]) / count,
            lambda value: [part.T * count for part in np.split(value, count)],
        )
        self._make(
            layer.bias,
            tuple(f"{name}.bias" for name in names),
            (units,),
            lambda *tensors: np.mean(tensors, axis=0),
            lambda value: [value] * count,
        )

    def copy_divided(self, layers: Sequence[keras.layers.Layer], name: str) -> None:
        """Maps kernels and biases of layers to one linear module of PyTorch.

        Args:
            layers: Layers with the same number of units, whose outputs the module has one after the
                other.
            name: The module.
        """
        for kind, weights in (
            ("weight", tuple(layer.kernel for layer in layers)),
            ("bias", tuple(layer.bias for layer in layers if layer.bias is not None)),
        ):
            if weights:
                *inputs, units = weights[0].shape
                self._sources.append(
                    _Source(
                        weights,
                        (f"{name}.{kind}",),
                        (units * len(layers), *inputs),
                        lambda tensor: np.split(tensor.T, len(layers), axis=-1),
                        lambda *values: [np.concatenate(values, axis=-1).T],
                    )
                )

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
        back = np.argsort(order)
        for weight, name in zip((cell.kernel, cell.recurrent_kernel), kernels, strict=True):
            self._make(
                weight,
                (name,),
                weight.shape[::-1],
                lambda tensor: tensor[order].T,
                lambda value: [value.T[back]],
            )
        self._make(
            cell.bias,
            biases,
            cell.bias.shape[1:],
            lambda *tensors: np.stack(tensors)[:, order],
            lambda value: list(value[:, back]),
        )

    def copy_depthwise(self, weight: keras.Variable, name: str) -> None:
        """Maps kernels (width, channels) to a depthwise `Conv2d` of PyTorch with a height of 1."""
        width, channels = weight.shape
        self._make(
            weight,
            (name,),
            (channels, 1, width, 1),
            lambda tensor: tensor[:, 0, :, 0].T,
            lambda value: [value.T[:, None, :, None]],
        )

    def copy_reshaped(
        self,
        weight: keras.Variable,
        name: str,
        shape: tuple[int, ...],
        order: Sequence[int] | None = None,
    ) -> None:
        """Maps a weight to a tensor of another shape with the same values.

        Args:
            weight: The weight.
            name: The tensor.
            shape: Its shape.
            order: The tensor's axes in the order of ours; their own by default.
        """
        order = list(range(len(shape)) if order is None else order)
        turned, back = [shape[axis] for axis in order], np.argsort(order)
        self._make(
            weight,
            (name,),
            shape,
            lambda tensor: tensor.transpose(order).reshape(weight.shape),
            lambda value: [value.reshape(turned).transpose(back)],
        )

    def copy_conv1d(self, layer: keras.layers.Layer, name: str) -> None:
        """Maps kernel and bias to a `Conv1D` of transformers, which is not transposed."""
        self.copy(layer.kernel, f"{name}.weight")
        self.copy(layer.bias, f"{name}.bias")

    def copy_norm(self, layer: keras.layers.Layer, name: str) -> None:
        """Maps `gamma` and `beta` of a normalization, where it has any, to a module's."""
        for weight, kind in ((layer.gamma, "weight"), (layer.beta, "bias")):
            if weight is not None:
                self.copy(weight, f"{name}.{kind}")

    def ignore(self, pattern: str) -> None:
        """Ignores tensors whose whole name matches a regular expression."""
        self._ignored.append(pattern)

    def _make(
        self,
        weight: keras.Variable,
        names: tuple[str, ...],
        shape: tuple[int, ...],
        make: Callable[..., np.ndarray],
        split: Callable[[np.ndarray], Sequence[np.ndarray]],
    ) -> None:
        source = _Source((weight,), names, tuple(shape), lambda *read: [make(*read)], split)
        self._sources.append(source)

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
        mapped |= {id(weight) for source in self._sources for weight in source.weights}
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
            weight = source.weights[0]
            if id(weight) in self._tables and isinstance(weight.value, tf.Variable):
                self._fill_table(source, tensors, original[source.names[0]])
                continue
            read = [tensors.read(original[name]) for name in source.names]
            for weight, value in zip(source.weights, source.make(*read), strict=True):
                weight.assign(value)

    def _fill_table(self, source: _Source, tensors: Tensors, name: str) -> None:
        """Copies a table, which may be most of a model, a few rows at a time."""
        rows, scale = self._tables[id(source.weights[0])]
        width = max(1, math.prod(source.shape[1:]))
        for first, last in _runs(rows, max(1, _CHUNK // width)):
            if rows[first] < 0:
                value = np.zeros((last - first, *source.shape[1:]), np.float32)
            else:
                start = int(rows[first])
                value = tensors.read(name, start, start + last - first) * np.float32(scale)
            tf.raw_ops.ResourceStridedSliceAssign(  # in place, which slices of a variable are not
                ref=source.weights[0].value.handle,
                begin=[first],
                end=[last],
                strides=[1],
                value=value,
            )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, by name."""
        return {name: source.shape for source in self._sources for name in source.names}

    def require_whole(self, model: keras.Model) -> None:
        """Raises unless `tensors` contain all that a model has learned.

        Args:
            model: The model.

        Raises:
            UserError: A weight has no tensor, or is not a plain floating-point number.
        """
        kept = {id(weight) for weight in self._kept if not np.any(_value(weight))}
        mapped = kept | {id(weight) for source in self._sources for weight in source.weights}
        numbers = [weight for weight in model.weights if _is_number(weight)]
        others = [weight.path for weight in numbers if id(weight) not in mapped]
        others += [
            source.names[0]
            for source in self._sources
            if not all(_is_number(weight) for weight in source.weights)
        ]
        require(
            not others,
            "A model can be saved for transformers if it has its own weights and no others: none "
            "of LoRA, and none that are quantized.",
            others=others[:_SHOWN],
        )

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the name and the value of every tensor, float32: the inverse of `fill`."""
        for source in self._sources:
            values = map(_value, source.weights)
            for name, tensor in zip(source.names, source.split(*values), strict=True):
                yield name, np.ascontiguousarray(tensor)

    def _check(self, tensors: Tensors, original: dict[str, str]) -> None:
        expected = self.shapes
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


def _same(tensor: np.ndarray) -> np.ndarray:
    return tensor


def _runs(rows: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Parts of a table, at most so many rows each, whose rows follow each other in the tensor."""
    ends = np.flatnonzero((np.diff(rows) != 1) | (rows[:-1] < 0)) + 1
    for begin, end in itertools.pairwise([0, *ends.tolist(), len(rows)]):
        for first in range(begin, end, most):
            yield first, min(first + most, end)


def _value(weight: keras.Variable) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(weight), np.float32)


def _is_number(weight: keras.Variable) -> bool:
    return isinstance(weight, keras.Variable) and keras.backend.is_float_dtype(weight.dtype)


def _listed(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
