"""One of two computations, whose choice is known only when a graph runs."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_attn.ops.autodiff import custom_gradient, is_float, vector_jacobian_product
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
        floats = [name for name, tensor in given.items() if is_float(tensor)]

        def gradient(upstream: Tensor) -> tuple:
            def of(function: Callable) -> list:
                def of_floats(*some: Any) -> Any:
                    return function(**(given | dict(zip(floats, some, strict=True))))

                _, pull_back = vector_jacobian_product(of_floats, *(given[x] for x in floats))
                return list(pull_back(upstream))

            grads = ops.cond(condition, lambda: of(first), lambda: of(second))
            by_name = dict(zip(floats, grads, strict=True))
            return tuple(by_name.get(name) for name in tensors)

        output = ops.cond(condition, lambda: first(**given), lambda: second(**given))
        return output, gradient

    return custom_gradient(with_gradient)(*tensors.values())
