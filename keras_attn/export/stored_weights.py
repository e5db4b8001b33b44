"""Quantized weights of a SavedModel."""

from collections.abc import Callable, Iterable, Mapping

import keras
import tensorflow as tf

from keras_attn.export_precision import STORED
from keras_attn.validation import require, require_one_of

Function = Callable[..., Mapping[str, tf.Tensor]]


class StoredWeights:
    """A task's resources in the form in which an export stores them.

    Matrices and other weights of rank 2 or more are copied to smaller variables. Vectors, such as
    biases and norms, and integers are unchanged. The task itself is not changed.

    Args:
        resources: The resources of the functions; `dtype` applies to the Keras variables in it.
        dtype: "float32" stores all weights unchanged; "float16" and "bfloat16" need half of the
            space for matrices, "int8" a quarter.
        only: Only matrices with this text in their path are quantized; "" for all.
        computing: Whether the functions compute with what is stored, as it is.

    Attributes:
        resources: The resources to store.
        dtype: The dtype of the quantized weights.
        smaller: Pairs of a weight and its quantized form.
        places: For the path of each Keras variable its index in `resources`.

    Raises:
        UserError: The dtype is unknown, or the task has no such weight.
    """

    def __init__(
        self,
        resources: Iterable[tf.Module | tf.Variable | keras.Variable],
        dtype: str,
        only: str = "",
        computing: bool = False,
    ) -> None:
        require_one_of("weights", dtype, STORED)
        self.dtype = dtype
        self.resources: list[tf.Module | tf.Variable] = []
        self.smaller: list[tuple[keras.Variable, _Cast | _Scaled]] = []
        self.places: dict[str, int] = {}
        for index, resource in enumerate(resources):
            if isinstance(resource, keras.Variable):
                self.places[resource.path] = index
            if not isinstance(resource, keras.Variable):
                self.resources.append(resource)
            elif dtype == "float32" or not _is_matrix(resource) or only not in resource.path:
                self.resources.append(resource.value)
            else:
                weight = _Scaled(resource) if dtype == "int8" else _Cast(resource, dtype, computing)
                self.smaller.append((resource, weight))
                self.resources.append(weight)
        require(
            dtype == "float32" or bool(self.smaller),
            "Only Keras weights of rank 2 or more can be quantized; the task has none"
            + (f" with {only!r} in its path." if only else "."),
            weights=dtype,
        )

    def reading(self, function: Function) -> Function:
        """Makes a function that uses the stored weights.

        They are read when the function begins, so that loops inside it use the task's dtype.

        Args:
            function: A function of the task that reads its Keras variables when it is called or
                traced.

        Returns:
            The function itself if no weight is quantized.
        """
        if not self.smaller:
            return function

        def reading_smaller(**inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
            values = [(weight, stored.read()) for weight, stored in self.smaller]
            with keras.StatelessScope(state_mapping=values):
                return function(**inputs)

        return reading_smaller


# `keras_attn.tasks.exported_weights` reads the variables of both by their names.
class _Cast(tf.Module):
    """A weight in another floating dtype."""

    def __init__(self, weight: keras.Variable, dtype: str, computing: bool) -> None:
        super().__init__()
        self._read_as = dtype if computing else weight.dtype
        self.values = tf.Variable(tf.cast(weight.value, dtype), trainable=False)

    def read(self) -> tf.Tensor:
        return tf.cast(self.values, self._read_as)


class _Scaled(tf.Module):
    """A weight as integers from -127 to 127 with a scale for each channel.

    Channels are along the first axis, as in embeddings, or along the last axis, as in kernels:
    the axis with the smaller error is used.
    """

    def __init__(self, weight: keras.Variable) -> None:
        super().__init__()
        value, last = tf.convert_to_tensor(weight.value), len(weight.shape) - 1
        numbers, scales = min(
            (_quantized(value, axis) for axis in (last, 0)),
            key=lambda pair: float(tf.reduce_sum((_dequantized(*pair) - value) ** 2)),
        )
        self.values = tf.Variable(numbers, trainable=False)
        self.scales = tf.Variable(scales, trainable=False)

    def read(self) -> tf.Tensor:
        return _dequantized(self.values, self.scales)


def _quantized(value: tf.Tensor, channel: int) -> tuple[tf.Tensor, tf.Tensor]:
    others = [axis for axis in range(value.shape.rank) if axis != channel]
    largest = tf.reduce_max(tf.abs(value), axis=others, keepdims=True)
    scales = tf.where(largest > 0, largest / 127, tf.ones_like(largest))
    return tf.cast(tf.round(value / scales), tf.int8), scales


def _dequantized(numbers: tf.Tensor | tf.Variable, scales: tf.Tensor | tf.Variable) -> tf.Tensor:
    return tf.cast(numbers, scales.dtype) * scales


def _is_matrix(weight: keras.Variable) -> bool:
    return len(weight.shape) >= 2 and keras.backend.is_float_dtype(weight.dtype)
