"""A matrix product with a bias, so that each runtime takes its fastest kernels."""

from collections.abc import Callable

import keras
from keras import ops

from keras_attn.tensors import Tensor


def linear(
    inputs: Tensor,
    kernel: Tensor,
    bias: Tensor = None,
    activation: Callable | None = None,
    training: bool = False,
) -> Tensor:
    """Computes activation(inputs kernel + bias).

    In training the bias is added to a matrix: TensorFlow then joins product, bias and activation
    into one kernel. Such a kernel packs its weights anew at every call, which pays for many rows
    and not for the few of a decoding step; nor in bfloat16, where it does without the matrix unit
    of the CPU (AMX) and takes three times as long. There the bias is added after the rows have
    been reshaped, and by subtracting its negative: XLA joins the product of a single row with a
    sum, though not with a difference, into a kernel of one thread, which takes a quarter longer.
    TensorFlow makes a sum of the difference.

    Args:
        inputs: Float tensor (..., features).
        kernel: Float tensor (features, units).
        bias: Float tensor (units,), or None.
        activation: Applied to each element, or None.
        training: Whether there are many rows, and a gradient is asked for.

    Returns:
        Tensor (..., units).
    """
    shape = (*ops.shape(inputs)[:-1], ops.shape(kernel)[-1])
    outputs = ops.matmul(ops.reshape(inputs, (-1, kernel.shape[0])), kernel)
    joined = training and keras.backend.standardize_dtype(outputs.dtype) != "bfloat16"
    if not joined:
        outputs = ops.reshape(outputs, shape)
    if bias is not None:
        bias = ops.convert_to_tensor(bias, outputs.dtype)
        outputs = outputs + bias if joined else outputs - ops.negative(bias)
    if activation is not None:
        outputs = activation(outputs)
    return ops.reshape(outputs, shape) if joined else outputs


def linear_of_heads(inputs: Tensor, kernels: Tensor) -> Tensor:
    """Computes the product of each head's vectors and its own kernel.

    A single kernel makes a plain matrix product: TensorFlow's product of (batch, 1, length, width)
    and one matrix, broadcast over the batch, crashes in oneDNN or gives NaN.

    Args:
        inputs: Float tensor (batch, heads, length, width).
        kernels: Float tensor (heads, width, units).

    Returns:
        Tensor (batch, heads, length, units).
    """
    if kernels.shape[0] == 1:
        return linear(inputs, kernels[0])
    return ops.matmul(inputs, kernels)
