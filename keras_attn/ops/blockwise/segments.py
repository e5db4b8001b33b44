"""One segment of a computation after the other, so that memory is held for one of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from keras import ops

from keras_attn.ops.autodiff import custom_gradient, gradients_by_name, is_float
from keras_attn.ops.devices import has_accelerator
from keras_attn.tensors import Tensor

# Numbers in a segment, as a power of 2: 16 MiB of float32; a few are held.
SEGMENT_LOG2 = 22
SEGMENT_LOG2_OF_ACCELERATORS = 26


def numbers_at_once() -> int:
    """How many numbers, such as scores, are best computed at once on this machine."""
    return 2 ** (SEGMENT_LOG2_OF_ACCELERATORS if has_accelerator() else SEGMENT_LOG2)


def map_segments(
    function: Callable, segments: dict[str, Any], shared: dict[str, Any], like: Callable
) -> Any:
    """Computes a function of each segment; the backward pass computes it once more.

    Args:
        function: Takes the number of a segment, a scalar int32 tensor, and every tensor by its
            name, those of `segments` without their first axis; returns one tensor.
        segments: Tensors (count, …) by name, of any dtype.
        shared: Tensors that all segments need, by name.
        like: Takes every tensor of a segment by its name; returns a tensor of the shape and dtype
            that the function returns, whose values do not matter.

    Returns:
        Tensor (count, …) of what the function returned.
    """
    names = (*segments, *shared)

    def with_gradient(*tensors: Any) -> tuple[Any, Callable]:
        given = dict(zip(names, tensors, strict=True))
        count = ops.shape(tensors[0])[0]
        numbers = ops.arange(count, dtype="int32")

        def parts(number: Any) -> dict[str, Any]:
            return {
                name: tensor[number] if name in segments else tensor
                for name, tensor in given.items()
            }

        def visit(_: Any, number: Any) -> tuple[Any, Any]:
            output = function(number, **parts(number))
            return output, output

        def gradient(upstream: Tensor) -> tuple:
            floats = [name for name, tensor in given.items() if is_float(tensor)]

            def visit(sums: dict, number: Any) -> tuple[dict, dict]:
                of_segment = partial(function, number)
                grads = gradients_by_name(of_segment, parts(number), upstream[number])
                grads |= {name: sums[name] + grads[name] for name in floats if name in shared}
                return grads, grads

            first = parts(0)
            last, grads = ops.scan(
                visit, {name: ops.zeros_like(first[name]) for name in floats}, numbers
            )
            grads |= {name: last[name] for name in floats if name in shared}
            return tuple(grads.get(name) for name in names)

        return ops.scan(visit, ops.zeros_like(like(**parts(0))), numbers)[1], gradient

    # Everything is an argument, because JAX forbids closing over what is being transformed.
    return custom_gradient(with_gradient)(*segments.values(), *shared.values())
