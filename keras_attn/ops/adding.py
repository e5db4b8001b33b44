"""Numbers added to some places of an array."""

import contextlib
import contextvars
import importlib
from collections.abc import Iterator

from keras import ops

from keras_attn.tensors import Tensor

_IN_PLACE = contextvars.ContextVar("adds_in_place", default=False)


@contextlib.contextmanager
def adds_in_place() -> Iterator[None]:
    """Lets `add_at` write into its argument, for graphs of TensorFlow that XLA does not compile."""
    token = _IN_PLACE.set(True)
    try:
        yield
    finally:
        _IN_PLACE.reset(token)


def add_at(array: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> Tensor:
    """Adds a number to one place of every row given.

    TensorFlow's operation that XLA can compile copies the whole array first. The other one writes
    in place where nothing else holds the array, and copies it where something does.

    Args:
        array: (rows, columns), floating.
        rows: Integer, (places,).
        columns: Integer, (places,).
        values: (places,), of the array's dtype.

    Returns:
        (rows, columns).

    Examples:
        >>> add_at(np.zeros((2, 3), "float32"), [0, 1], [2, 0], [1.0, 2.0]).numpy().tolist()
        [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]
    """
    places = ops.stack([rows, columns], axis=1)
    if not _IN_PLACE.get():
        return ops.scatter_update(array, places, values, reduction="add")
    tf = importlib.import_module("tensorflow")
    return tf.raw_ops.ScatterNdNonAliasingAdd(input=array, indices=places, updates=values)
