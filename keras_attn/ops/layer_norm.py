"""Layer normalization in fewer passes over memory than automatic differentiation makes."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.autodiff import custom_gradient
from keras_attn.tensors import Tensor


def layer_norm(
    inputs: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float, training: bool = False
) -> Tensor:
    """Computes gamma * (x - mean) / sqrt(variance + epsilon) + beta over the last axis.

    In float32 (float64 for float64 inputs), whatever the dtype of the inputs. On a CPU it costs
    its walks through memory, and the gradient that Keras' own gets by automatic differentiation
    most of them: in mixed precision a fifth of a small Transformer's training step.

    Args:
        inputs: Float tensor (..., width).
        gamma: Float tensor (width,).
        beta: Float tensor (width,), or `None` for 0.
        epsilon: Added to the variance.
        training: Whether a gradient will be asked for: what it needs is kept then.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Reference:
        Ba et al., 2016, https://arxiv.org/abs/1607.06450, equation 4.
    """
    inputs = ops.convert_to_tensor(inputs)
    dtype = computing_dtype(inputs.dtype)
    gamma = ops.cast(gamma, dtype)
    beta = ops.zeros_like(gamma) if beta is None else ops.cast(beta, dtype)
    x = ops.cast(inputs, dtype)
    if training:
        x = ops.reshape(x, (-1, x.shape[-1]))
        normalize = custom_gradient(lambda *values: _with_gradient(*values, epsilon))
        outputs = ops.reshape(normalize(x, gamma, beta), ops.shape(inputs))
    else:
        outputs = _normalized(x, epsilon)[0] * gamma + beta
    return ops.cast(outputs, inputs.dtype)


def _normalized(x: Tensor, epsilon: float) -> tuple[Any, Any]:
    """`x` with mean 0 and variance 1 in each row, and by what it was multiplied."""
    centred = x - _mean(x)
    scale = ops.rsqrt(_mean(ops.square(centred)) + epsilon)
    return centred * scale, scale


def _mean(x: Tensor) -> Any:
    # Keras' `mean` is one in float32 on JAX.
    return ops.sum(x, axis=-1, keepdims=True) / ops.cast(ops.shape(x)[-1], x.dtype)


def _with_gradient(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tuple[Any, Callable]:
    """(rows, width) -> the same, and the gradients with respect to all three."""
    normalized, scale = _normalized(x, epsilon)

    def gradient(upstream: Tensor) -> tuple[Any, Any, Any]:
        product = upstream * normalized
        # Sums over rows and weighted sums over columns, as matrix products.
        ones = ops.ones((1, ops.shape(x)[0]), x.dtype)
        weights = ops.expand_dims(gamma / x.shape[-1], 1)  # (width, 1)
        mean = ops.matmul(upstream, weights)  # (rows, 1)
        slope = ops.matmul(product, weights)  # (rows, 1)
        along_x = (upstream * gamma - (normalized * slope + mean)) * scale
        along_gamma = ops.squeeze(ops.matmul(ones, product), 0)
        along_beta = ops.squeeze(ops.matmul(ones, upstream), 0)
        return along_x, along_gamma, along_beta

    return normalized * gamma + beta, gradient
