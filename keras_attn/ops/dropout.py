"""Dropout with a quarter of the random bits and fewer passes over memory than Keras' own."""

import math
from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor
from keras_attn.validation import require_rate

_LEVELS = 256  # of a random byte
_FINE = 2**30


def dropout(inputs: Tensor, rate: float, seed: keras.random.SeedGenerator) -> Any:
    """Sets elements to zero at random and scales the others, so that the expected sum stays.

    On a CPU dropout costs the drawing of numbers and walks through memory. Here each element
    costs one random byte, which is compared with a threshold as it is. Every element is dropped
    with probability `rate`, to nine digits: since a byte has only 256 levels, the
    threshold is itself drawn at each call, from the two levels next to the rate.

    Args:
        inputs: Float tensor of any shape.
        rate: Fraction of elements to set to zero, in [0, 1).
        seed: The generator of the random numbers.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Raises:
        UserError: `rate` is outside [0, 1).

    Reference:
        Srivastava et al., 2014, https://jmlr.org/papers/v15/srivastava14a.html.
    """
    require_rate(rate=rate)
    if rate > (_LEVELS - 1) / _LEVELS:  # the level above would not be a byte
        return keras.random.dropout(inputs, rate, seed=seed)
    if not rate:
        return inputs
    inputs = ops.convert_to_tensor(inputs)
    size = math.prod(ops.shape(inputs))  # a tensor where one of the sizes is
    words = (size + 3) // 4
    drawn = keras.random.randint((words + 1, 1), -(2**31), 2**31 - 1, "int32", seed)
    # What is cut off is at the end, so that nothing is copied.
    random_bytes = ops.reshape(ops.view(drawn, "uint8"), (-1,))[:size]
    is_kept = ops.greater_equal(random_bytes, _threshold(rate, drawn[-1, 0]))
    scale = ops.convert_to_tensor(1 / (1 - rate), inputs.dtype)
    # One multiplication forward, and one backward, by a mask that holds the scale.
    mask = ops.where(is_kept, scale, ops.zeros_like(scale))
    return ops.multiply(inputs, ops.reshape(mask, ops.shape(inputs)))


class DrawnSeed(keras.random.SeedGenerator):
    """A seed that was drawn before; `keras.random` takes no tensor.

    Args:
        value: What `SeedGenerator.next` gave, a tensor (2,).
        number: Which of the computations that share it this is, a scalar int32 tensor: each has
            random numbers of its own.
    """

    def __init__(self, value: Any, number: Any):
        index = ops.cast(number, value.dtype)
        # A large odd step keeps the numbers of one seed away from those of its neighbors.
        self._value = value + ops.stack([index * 1_640_531_527, ops.zeros_like(index)])
        self._initial_seed = 0  # Keras on torch takes a generator of None for no seed at all

    def next(self, ordered: bool = True) -> Any:
        """The seed, each time the same."""
        return self._value


def _threshold(rate: float, drawn: Tensor) -> Tensor:
    """The level below `256 * rate` or the one above, as often as makes up the rate."""
    level, rest = divmod(rate * _LEVELS, 1)
    is_above = ops.less(ops.mod(drawn, _FINE), round(rest * _FINE))
    return ops.cast(int(level) + ops.cast(is_above, "int32"), "uint8")
