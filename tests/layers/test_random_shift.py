"""RandomShift: where images go in training, and that they stay where they are otherwise."""

import collections

import numpy as np

from keras_attn.layers import RandomShift
from tests.harness import numbers, numpy
from tests.refusals import refused

IMAGE = numbers(1, 5, 7, 2)


def moved(image, down, right):
    """By loops, with the nearest pixel of the image where there is none."""
    height, width, _ = image.shape
    result = np.zeros_like(image)
    for y in range(height):
        for x in range(width):
            from_y, from_x = min(max(y - down, 0), height - 1), min(max(x - right, 0), width - 1)
            result[y, x] = image[from_y, from_x]
    return result


def test_every_shift_is_about_as_frequent():
    images = np.stack([IMAGE] * 1000)
    found = numpy(RandomShift(2, seed=3)(images, training=True))
    expected = {
        (down, right): moved(IMAGE, down, right) for down in range(-2, 3) for right in range(-2, 3)
    }
    counts = collections.Counter()
    for image in found:
        (shift,) = [one for one, other in expected.items() if np.allclose(image, other, atol=1e-6)]
        counts[shift] += 1
    assert len(counts) == 25
    assert 20 < min(counts.values()) < max(counts.values()) < 65  # 40 on average, +-6


def test_another_one_at_every_call_and_none_outside_of_training():
    layer, images = RandomShift(3), np.stack([IMAGE] * 20)
    first, second = (numpy(layer(images, training=True)) for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(numpy(layer(images)), images)


def test_mistakes_are_told():
    refused("Received: most=0", RandomShift, 0)
