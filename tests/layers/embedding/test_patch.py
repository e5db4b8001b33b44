"""PatchEmbedding against loops over the patches; ClassToken."""

import keras
import numpy as np
import pytest

from keras_attn.layers import ClassToken, PatchEmbedding
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

IMAGES = numbers(1, 2, 6, 10, 3)


def by_loops(images, kernel, bias, patch_height, patch_width):
    """A convolution whose stride is its kernel's size, pixel by pixel."""
    rows = []
    for image in images.astype("float64"):
        patches = []
        for top in range(0, image.shape[0], patch_height):
            for left in range(0, image.shape[1], patch_width):
                pixels = [
                    image[top + y, left + x, channel]
                    for y in range(patch_height)
                    for x in range(patch_width)
                    for channel in range(image.shape[2])
                ]
                patches.append(np.array(pixels) @ kernel + bias)
        rows.append(patches)
    return np.array(rows)


@pytest.mark.parametrize(("size", "patches"), [(2, 15), ((3, 5), 4), ((6, 1), 10)])
def test_the_patches_of_loops(size, patches):
    layer = PatchEmbedding(size, 7)
    layer.build(IMAGES.shape)
    spread_weights(layer)
    found = numpy(layer(IMAGES))
    assert found.shape == (2, patches, 7)
    sides = (size, size) if isinstance(size, int) else size
    expected = by_loops(IMAGES, numpy(layer.kernel), numpy(layer.bias), *sides)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_integers_are_numbers_too():
    images = np.arange(48, dtype="uint8").reshape(1, 4, 4, 3)
    layer = PatchEmbedding(2, 5)
    np.testing.assert_array_equal(numpy(layer(images)), numpy(layer(images.astype("float32"))))


def test_images_of_unknown_size():
    inputs = keras.Input((None, None, 3))
    model = keras.Model(inputs, PatchEmbedding(2, 7)(inputs))
    assert model.output_shape == (None, None, 7)
    assert model(IMAGES).shape == (2, 15, 7)
    refused("Received: patch_size=2, height=5, width=10", model, IMAGES[:, :5])


def test_mistakes_are_told():
    message = "must divide the height and the width.*Received: patch_size=4, height=6, width=10."
    refused(message, PatchEmbedding(4, 7), IMAGES)
    refused("height=6, width=10", PatchEmbedding((2, 3), 7), keras.Input((6, 10, 3)))
    with pytest.raises(UserError, match=r"must be one number or two. Received: patch_size=\(1, 2,"):
        PatchEmbedding((1, 2, 3), 7)
    refused("`patch_size.1.` must be a positive integer. .*=0", PatchEmbedding, (1, 0), 7)
    refused("Received: hidden_dim=-1", PatchEmbedding, 2, -1)


def test_a_class_token_comes_first_and_is_no_padding():
    inputs = keras.Input((None, 7))
    token = ClassToken("random_normal")
    masked = token(keras.layers.Masking()(inputs))
    model = keras.Model(inputs, [masked, masked._keras_mask])
    x = numbers(2, 2, 5, 7)
    x[1, 3:] = 0
    vectors, mask = (numpy(output) for output in model(x))
    np.testing.assert_array_equal(vectors[:, 1:], x)
    np.testing.assert_array_equal(vectors[:, 0], np.stack([numpy(token.vector)] * 2))
    assert vectors[0, 0].any()
    assert mask.tolist() == [[True] * 6, [True] * 4 + [False] * 2]
