"""The dtype in which a SavedModel stores the weights; it computes as the task does."""

from collections.abc import Callable, Iterable, Mapping

import keras
import tensorflow as tf

from keras_attn.validation import require, require_one_of

DTYPES = ("float32", "float16", "bfloat16")

Function = Callable[..., Mapping[str, tf.Tensor]]


class StoredWeights:
    """A task's resources as they are stored, and its functions reading them.

    In half precision, matrices and other weights of rank 2 or more are copied to variables of that
    dtype; vectors, such as biases and norms, and whole numbers stay. The task keeps its own.

    Args:
        resources: What the functions use; half precision is for the Keras variables among them.
        dtype: "float32" stores everything as the task has it, "float16" and "bfloat16" the
            matrices in half of that.
        halved: Part of the paths of the matrices that are halved; all of them have the empty one.

    Attributes:
        resources: What is to be stored.
        dtype: The dtype of the halves.
        halves: Each weight that is halved, and its half.

    Raises:
        UserError: The dtype is another, or the task has no weight that could be halved.
    """

    def __init__(
        self,
        resources: Iterable[tf.Module | tf.Variable | keras.Variable],
        dtype: str,
        halved: str = "",
    ) -> None:
        require_one_of("weights", dtype, DTYPES)
        self.dtype = dtype
        self.resources: list[tf.Module | tf.Variable] = []
        self.halves: list[tuple[keras.Variable, tf.Variable]] = []
        for resource in resources:
            if not isinstance(resource, keras.Variable):
                self.resources.append(resource)
            elif dtype == "float32" or not _is_matrix(resource) or halved not in resource.path:
                self.resources.append(resource.value)
            else:
                half = tf.Variable(tf.cast(resource.value, dtype), trainable=False)
                self.halves.append((resource, half))
                self.resources.append(half)
        require(
            dtype == "float32" or bool(self.halves),
            "Half precision needs a task with Keras weights of rank 2 or more.",
            weights=dtype,
            halved=halved,
        )

    def reading(self, function: Function) -> Function:
        """Makes a function, to be traced, that computes with the stored weights.

        They are cast at its beginning, so that loops inside it find them cast.

        Args:
            function: A function of the task that reads its Keras variables while it is traced.

        Returns:
            The function itself where nothing is stored in half precision.
        """
        if not self.halves:
            return function

        def reading_halves(**inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
            values = [(weight, tf.cast(half, weight.dtype)) for weight, half in self.halves]
            with keras.StatelessScope(state_mapping=values):
                return function(**inputs)

        return reading_halves


def _is_matrix(weight: keras.Variable) -> bool:
    return len(weight.shape) >= 2 and keras.backend.is_float_dtype(weight.dtype)
