import numpy as np
import pytest
from keras import ops

from keras_attn.ops.random_bits import random_bits, random_uniform


def word(value):
    return ops.convert_to_tensor(value, dtype="uint32")


# The known answers that the authors of Threefry publish with it.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(counter, key, expected):
    found = random_bits(tuple(map(word, key)), tuple(map(word, counter)))
    assert tuple(int(part) for part in found) == expected


def test_uniform_numbers_are_the_highest_bits():
    zero = ops.zeros((), "int32")
    found = ops.convert_to_numpy(random_uniform((zero, zero), (zero, zero)))
    np.testing.assert_array_equal(found, np.array([0x6B2001, 0x99BA4E], "float32") / 2**24)


def test_uniform_numbers_fill_the_unit_interval_evenly():
    key = (ops.convert_to_tensor(7, "int32"), ops.convert_to_tensor(-1, "int32"))
    counter = (ops.arange(211)[:, None], ops.arange(503)[None])
    found = ops.convert_to_numpy(random_uniform(key, counter))
    assert found.shape == (211, 503, 2)
    assert found.dtype == np.float32
    assert found.min() >= 0
    assert found.max() < 1
    counts = np.histogram(found, bins=101, range=(0, 1))[0]
    expected = found.size / 101
    # Of chi-square with 100 degrees of freedom 99.9% lie below 149.4.
    assert ((counts - expected) ** 2 / expected).sum() < 149.4
    correlation = np.corrcoef(found.reshape(-1, 2).T)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(211 * 503)
