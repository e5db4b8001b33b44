"""Products of 8-bit integers, with weights that are constants of the graph."""

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.tensors import Tensor

_AS_CONSTANTS: ContextVar[bool] = ContextVar("keras_attn_weights_as_constants", default=False)
INEXACT = (
    "Products of 8-bit integers are summed exactly only on x86 processors with VNNI (AVX-512 or "
    "AVX), by a TensorFlow that uses oneDNN, and this one is not: compute in float32 here."
)
_ZERO = 128  # of the inputs, which the kernel takes as numbers from 0 to 255


@contextlib.contextmanager
def weights_as_constants(are_constants: bool = True) -> Iterator[None]:
    """Within it, TensorFlow's graphs hold the values that quantized weights have now.

    A graph that is traced there does not follow later changes of the weights.

    Args:
        are_constants: Whether they do; otherwise graphs read the weights themselves.
    """
    token = _AS_CONSTANTS.set(are_constants)
    try:
        yield
    finally:
        _AS_CONSTANTS.reset(token)


def are_weights_constants() -> bool:
    """Whether `integer_product` can be used: within `weights_as_constants`, on TensorFlow."""
    return _AS_CONSTANTS.get() and keras.backend.backend() == "tensorflow"


def values_now(weights: Sequence[keras.Variable]) -> list[np.ndarray]:
    """The values of weights, also while TensorFlow traces a graph.

    Args:
        weights: Weights of a layer.
    """
    with importlib.import_module("tensorflow").init_scope():
        return [ops.convert_to_numpy(weight) for weight in weights]


def integer_product(inputs: Tensor, kernel: np.ndarray, scale: np.ndarray) -> Any:
    """Computes inputs kernel / scale in 8-bit integers.

    Each row is divided by its largest absolute value and rounded to integers from -127 to 127, as
    `keras.quantizers.AbsMaxQuantizer` does it; their products with those of the kernel are summed
    exactly. TensorFlow's operation takes its weights apart once only if they are a constant: of
    256 rows, 512 features and 2,048 units it takes 0.9 ms on two cores with VNNI that way and 2.2
    ms with a variable; the product of floats takes 2.6 ms. Not for XLA, nor for processors without
    VNNI, on which pairs of products are summed in 16 bits: see `are_sums_exact`.

    Args:
        inputs: Float tensor (..., features).
        kernel: int8 array (features, units).
        scale: Float array (units,), by which the kernel has been multiplied.

    Returns:
        Tensor (..., units) of the dtype of the inputs.
    """
    tf = importlib.import_module("tensorflow")
    features, units = kernel.shape
    rows = tf.cast(tf.reshape(inputs, (-1, features)), tf.float32)
    largest = tf.maximum(tf.reduce_max(tf.abs(rows), axis=-1, keepdims=True), 1e-30)
    # Of signed inputs its own form gives wrong sums: they are moved, and the kernel's sum is
    # subtracted, which the operation calls a bias. Conversion cuts off what is behind the point.
    numbers = tf.cast(rows * (127 / largest) + (_ZERO + 0.5), tf.uint8)
    sums = -float(_ZERO) * kernel.sum(axis=0, dtype="float64")
    products = _sums_of_products(numbers, kernel, sums)
    outputs = products * (largest / 127) * tf.constant(1 / scale, tf.float32)
    shape = [-1 if size is None else size for size in inputs.shape[:-1]]
    shape = shape if shape.count(-1) < 2 else ops.shape(inputs)[:-1]
    return tf.reshape(tf.cast(outputs, inputs.dtype), (*shape, units))


def are_sums_exact() -> bool:
    """Whether this processor, with the TensorFlow at hand, sums products of integers exactly.

    x86 processors with VNNI do. On others, oneDNN sums pairs of products in 16 bits, which are too
    few for large ones, and where TensorFlow does not use oneDNN the operation has no outputs.
    """
    tf = importlib.import_module("tensorflow")
    try:
        return bool(tf.function(_are_sums_exact, autograph=False)())
    except tf.errors.InternalError:
        return False


def require_exact_sums() -> Any:
    """Makes an operation of a graph that fails wherever `are_sums_exact` does not hold.

    Returns:
        The operation, for `tf.control_dependencies`.
    """
    tf = importlib.import_module("tensorflow")
    return tf.debugging.Assert(_are_sums_exact(), [INEXACT])


def _are_sums_exact() -> Any:
    tf = importlib.import_module("tensorflow")
    kernel = np.full((64, 16), 127, "int8")
    # The name is a part of the only message where the operation has no outputs.
    sums = _sums_of_products(
        tf.fill((4, 64), tf.constant(255, tf.uint8)),
        kernel,
        np.zeros(16),
        name="this_model_computes_in_integers_and_needs_a_processor_with_VNNI",
    )
    return tf.reduce_all(sums == 64.0 * 255 * 127)


def _sums_of_products(
    numbers: Any, kernel: np.ndarray, start: np.ndarray, name: str | None = None
) -> Any:
    """Sums of products of integers from 0 to 255 with a kernel's, added to those to start from."""
    tf = importlib.import_module("tensorflow")
    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=tf.bitcast(numbers, tf.quint8),
        b=tf.constant(kernel, tf.qint8),
        bias=tf.constant(start, tf.float32),
        min_a=0.0,
        max_a=255.0,
        min_b=-127.0,
        max_b=127.0,
        min_freezed_output=-1.0,
        max_freezed_output=1.0,
        Toutput=tf.float32,
        input_quant_mode="SCALED",
        name=name,
    )
