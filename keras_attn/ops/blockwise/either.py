"""One of two computations, whose choice is known only when a graph runs."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_attn.ops.autodiff import custom_gradient, gradients_by_name
from keras_attn.tensors import Tensor


def either(condition: Any, first: Callable, second: Callable, tensors: dict[str, Any]) -> Tensor:
    """Computes one of two functions; in a graph the backward pass computes it once more.

    What a branch keeps for its gradient would have another shape in the other branch, which XLA
    refuses. So nothing is kept.

    Args:
        condition: Whether to compute the first, a boolean or a scalar boolean tensor.
        first: Takes every tensor by its name; returns one tensor.
        second: The same; its tensor has the same shape and dtype.
        tensors: Tensors of any dtype by name.

    Returns:
        The tensor that the function returned.
    """
    if isinstance(condition, bool):
        return (first if condition else second)(**tensors)

    def with_gradient(*values: Any) -> tuple[Any, Callable]:
        given = dict(zip(tensors, values, strict=True))

        def gradient(upstream: Tensor) -> tuple:
            grads = ops.cond(
                condition,
                lambda: gradients_by_name(first, given, upstream),
                lambda: gradients_by_name(second, given, upstream),
            )
            return tuple(grads.get(name) for name in tensors)

        output = ops.cond(condition, lambda: first(**given), lambda: second(**given))
        return output, gradient

    return custom_gradient(with_gradient)(*tensors.values())
