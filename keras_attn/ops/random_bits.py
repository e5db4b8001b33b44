"""Random numbers that are a function of a key and a counter, the same on every backend."""

from typing import Any

import keras
from keras import ops

from keras_attn.tensors import Tensor

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def random_bits(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Computes the block cipher Threefry-2x32 with 20 rounds: 64 random bits for each counter.

    Sums, rotations and exclusive ors of whole numbers alone, so that eager code, graphs, XLA and
    all backends give the same bits.

    Args:
        key: Two uint32 tensors.
        counter: Two uint32 tensors; all four broadcast.

    Returns:
        Two uint32 tensors.

    Reference:
        [Salmon et al., 2011](https://doi.org/10.1145/2063384.2063405), section 4.2.
    """
    keys = (*key, ops.bitwise_xor(ops.bitwise_xor(*key), _word(_PARITY)))
    left, right = _wrapped(counter[0] + keys[0]), _wrapped(counter[1] + keys[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            left = _wrapped(left + right)
            right = ops.bitwise_xor(_rotate(right, distance), left)
        left = _wrapped(left + keys[(group + 1) % 3])
        right = _wrapped(right + keys[(group + 2) % 3] + _word(group + 1))
    return left, right


def random_uniform(key: tuple[Any, Any], counter: tuple[Any, Any]) -> Tensor:
    """Draws two uniform numbers for each counter.

    Args:
        key: Two int32 tensors.
        counter: Two int32 tensors; all four broadcast.

    Returns:
        float32 (..., 2), multiples of 2 ** -24 in [0, 1).
    """
    words = random_bits(
        tuple(_wrapped(ops.cast(part, "uint32")) for part in key),
        tuple(_wrapped(ops.cast(part, "uint32")) for part in counter),
    )
    highest = [ops.right_shift(word, _word(8)) for word in words]
    return ops.cast(ops.cast(ops.stack(highest, axis=-1), "int32"), "float32") * 2.0**-24


def _word(value: int) -> Any:
    return ops.convert_to_tensor(value, dtype="uint32")


def _wrapped(word: Any) -> Any:
    """Takes a word modulo 2³² where Keras makes uint32 of 64 bits: on torch."""
    if keras.backend.backend() != "torch":
        return word
    return ops.bitwise_and(word, _word(0xFFFFFFFF))


def _rotate(word: Any, distance: int) -> Any:
    left = _wrapped(ops.left_shift(word, _word(distance)))
    return ops.bitwise_or(left, ops.right_shift(word, _word(32 - distance)))
