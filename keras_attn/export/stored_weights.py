"""Weights as a SavedModel stores them, in less room, and computes with them as the task does."""

from collections.abc import Callable, Iterable, Mapping

import keras
import tensorflow as tf

from keras_attn.validation import require, require_one_of

DTYPES = ("float32", "float16", "bfloat16", "int8")

Function = Callable[..., Mapping[str, tf.Tensor]]


class StoredWeights:
    """A task's resources as they are stored, and its functions reading them.

    Matrices and other weights of rank 2 or more are copied to smaller variables; vectors, such as
    biases and norms, and whole numbers stay. The task keeps its own.

    Args:
        resources: What the functions use; the dtype is for the Keras variables among them.
        dtype: "float32" stores everything as the task has it; "float16" and "bfloat16" the matrices
            in half of that, and "int8" in a quarter.
        only: Part of the paths of the matrices that are meant; all of them have the empty one.

    Attributes:
        resources: What is to be stored.
        dtype: The dtype of the smaller ones.
        smaller: Each weight that is stored so, and what is stored of it.

    Raises:
        UserError: The dtype is another, or the task has no such weight.
    """

    def __init__(
        self,
        resources: Iterable[tf.Module | tf.Variable | keras.Variable],
        dtype: str,
        only: str = "",
    ) -> None:
        require_one_of("weights", dtype, DTYPES)
        self.dtype = dtype
        self.resources: list[tf.Module | tf.Variable] = []
        self.smaller: list[tuple[keras.Variable, _Cast | _Scaled]] = []
        for resource in resources:
            if not isinstance(resource, keras.Variable):
                self.resources.append(resource)
            elif dtype == "float32" or not _is_matrix(resource) or only not in resource.path:
                self.resources.append(resource.value)
            else:
                weight = _Scaled(resource) if dtype == "int8" else _Cast(resource, dtype)
                self.smaller.append((resource, weight))
                self.resources.append(weight)
        require(
            dtype == "float32" or bool(self.smaller),
            "Smaller weights need a task with Keras weights of rank 2 or more"
            + (f" with {only!r} in their paths." if only else "."),
            weights=dtype,
        )

    def reading(self, function: Function) -> Function:
        """Makes a function that computes with the stored weights.

        They are read at its beginning, so that loops inside it find them in the task's dtype.

        Args:
            function: A function of the task that reads its Keras variables when it is called, or
                while it is traced.

        Returns:
            The function itself where nothing is stored in another dtype.
        """
        if not self.smaller:
            return function

        def reading_smaller(**inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
            values = [(weight, stored.read()) for weight, stored in self.smaller]
            with keras.StatelessScope(state_mapping=values):
                return function(**inputs)

        return reading_smaller


class _Cast(tf.Module):
    """A weight in another floating dtype."""

    def __init__(self, weight: keras.Variable, dtype: str) -> None:
        super().__init__()
        self._read_as = weight.dtype
        self.values = tf.Variable(tf.cast(weight.value, dtype), trainable=False)

    def read(self) -> tf.Tensor:
        return tf.cast(self.values, self._read_as)


class _Scaled(tf.Module):
    """A weight as whole numbers from -127 to 127, and the scale of each of its channels.

    Channels are the places along the first axis, as of embeddings, or along the last one, as of
    kernels: whichever loses less.
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
