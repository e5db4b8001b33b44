"""Parts of an axis whose gradient is cheap."""

from typing import Any

from keras import ops

from keras_attn.tensors import Tensor


def part(tensor: Tensor, axis: int, start: Tensor, count: Any) -> Tensor:
    """Some positions of an axis.

    TensorFlow computes the gradient of an index expression in one thread, element by element:
    it can take a third of a step. That of a slice, by contrast, is a padding.

    Args:
        tensor: Tensor of known rank.
        axis: The axis, negative ones counted from the end.
        start: The first position, an integer or a scalar int32 tensor.
        count: Number of positions, an integer or a scalar int32 tensor.

    Returns:
        Tensor of that many positions along the axis.
    """
    sizes = list(ops.shape(tensor))
    starts = [0] * len(sizes)
    sizes[axis], starts[axis] = count, start
    return ops.slice(tensor, starts, sizes)
