"""A matrix product with a bias, so that each runtime takes its fastest kernels."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.ops.autodiff import wait_for
from keras_attn.tensors import Tensor

_GELUS = ("gelu", "gelu_tanh")


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
    TensorFlow makes a sum of the difference. PyTorch has one operation for product and bias.

    GELU is joined without a gradient too, but for the single row of a decoding step: on a CPU with
    AMX, 4,096 rows from 384 to 1,536 features take 45 ms instead of 73, and 45 instead of 167 in
    bfloat16, 32 rows 0.77 instead of 0.94 ms, and 0.66 instead of 1.16. Where it is not joined,
    GELU of bfloat16 is computed in float32: the error function of TensorFlow is slow in bfloat16,
    and an update of such a layer takes 101 instead of 147 ms.

    Args:
        inputs: Float tensor (..., features).
        kernel: Float tensor (features, units).
        bias: Float tensor (units,), or None.
        activation: Applied to each element, or None.
        training: Whether there are many rows, and a gradient is asked for.

    Returns:
        Tensor (..., units).
    """
    if keras.backend.backend() == "torch" and not isinstance(inputs, keras.KerasTensor):
        outputs = _linear_on_torch(inputs, kernel, bias)
        return outputs if activation is None else activation(outputs)
    shape = (*ops.shape(inputs)[:-1], ops.shape(kernel)[-1])
    outputs = ops.matmul(ops.reshape(inputs, (-1, kernel.shape[0])), kernel)
    is_half = keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    in_training = training and not is_half
    is_gelu = getattr(activation, "__name__", None) in _GELUS
    with_gelu = is_gelu and not training and inputs.shape[-2] != 1
    joined = in_training or with_gelu
    if not joined:
        outputs = ops.reshape(outputs, shape)
    if bias is not None:
        bias = ops.convert_to_tensor(bias, outputs.dtype)
        if with_gelu:
            outputs = ops.add(outputs, bias)  # knows a bias where the number of rows is not known
        else:
            outputs = outputs + bias if in_training else outputs - ops.negative(bias)
    if is_gelu and is_half and not joined:
        outputs = ops.cast(activation(ops.cast(outputs, "float32")), outputs.dtype)
    elif activation is not None:
        outputs = activation(outputs)
    return ops.reshape(outputs, shape) if joined else outputs


def _linear_on_torch(inputs: Tensor, kernel: Tensor, bias: Tensor) -> Any:
    inputs, kernel = ops.convert_to_tensor(inputs), ops.convert_to_tensor(kernel)
    bias = None if bias is None else ops.convert_to_tensor(bias, inputs.dtype)
    return importlib.import_module("torch").nn.functional.linear(inputs, kernel.T, bias)


def one_by_one(inputs: Mapping[str, Any], done: Sequence[Any]) -> Mapping[str, Any]:
    """Holds back the inputs of a product until others are done, in a graph of TensorFlow.

    Two products of unequal sizes at once share its threads badly: of 4,096 rows and 512 features,
    one to 512 and one to 1,024 take 17.5 ms on two cores, and 13.7 ms one after the other.

    Args:
        inputs: Tensors (batch, length, features) by name, or `None`.
        done: Tensors that the other products give.

    Returns:
        The tensors by name; where two were one, they still are.
    """
    if not done or keras.backend.backend() != "tensorflow":
        return inputs
    given = {id(x): x for x in inputs.values() if x is not None and x.shape[1] != 1}
    held = dict(zip(given, wait_for(list(given.values()), list(done)), strict=True))
    return {name: held.get(id(x), x) for name, x in inputs.items()}


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


def with_leading_axes(matrices: Tensor, other: Tensor) -> Any:
    """Repeats matrices for a product with others, axes of size 1 written out.

    TensorFlow's product that broadcasts leading axes crashes in oneDNN, or gives NaN, where there
    is one head.

    Args:
        matrices: Tensor (…, rows, columns), whose leading axes broadcast to those of `other`.
        other: Tensor (…, rows, columns).

    Returns:
        Tensor of the leading axes of `other`.
    """
    shape, wanted = ops.shape(matrices), ops.shape(other)[:-2]
    if tuple(matrices.shape[:-2]) == tuple(other.shape[:-2]) and None not in other.shape[:-2]:
        return matrices
    return ops.broadcast_to(matrices, (*wanted, *shape[-2:]))


def identity(size: Any, dtype: str) -> Any:
    """The identity matrix (size, size), by operations that all runtimes have."""
    at = ops.arange(size, dtype="int32")
    return ops.cast(ops.equal(ops.expand_dims(at, 1), at), dtype)
