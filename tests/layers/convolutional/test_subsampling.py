"""ConvolutionalSubsampling against loops, with padding and without."""

import keras
import numpy as np
import pytest

from keras_attn.layers import ConvolutionalSubsampling
from keras_attn.validation import UserError
from tests.generation.toy_models import compiled
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused


def by_loops(x, layer):
    """One sequence (length, features) through every convolution, product by product."""
    x = x.astype("float64")
    for convolution, stride in zip(layer.convolutions, layer.strides, strict=True):
        kernel = numpy(convolution.kernel).reshape(layer.kernel_size, x.shape[1], -1)
        outputs = []
        for middle in range(0, len(x), stride):
            total = numpy(convolution.bias).astype("float64")
            for tap in range(layer.kernel_size):
                place = middle + tap - layer.kernel_size // 2
                if 0 <= place < len(x):
                    total = total + x[place] @ kernel[tap]
            outputs.append(np.maximum(total, 0))
        x = np.array(outputs)
    return x


def made(features=5, **arguments):
    layer = ConvolutionalSubsampling(7, **({"activation": "relu"} | arguments))
    layer.build((None, None, features))
    return spread_weights(layer)


@pytest.mark.parametrize("length", [1, 2, 8, 13])
@pytest.mark.parametrize(
    "arguments", [{}, {"kernel_size": 5, "strides": (1, 3)}, {"kernel_size": 1, "strides": [2]}]
)
def test_the_convolutions_of_loops(arguments, length):
    layer, x = made(**arguments), numbers(length, 2, length, 5)
    expected = np.stack([by_loops(row, layer) for row in x])
    found = numpy(layer(x))
    assert found.shape == layer.compute_output_shape(x.shape)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("strides", [(2, 2), (1, 3), (3,)])
def test_padding_never_changes_a_real_output(strides):
    layer = made(strides=strides, kernel_size=5)
    run = compiled(lambda x, mask: layer(x, mask=mask))
    x = numbers(3, 8, 11, 5)
    mask = np.arange(11) < np.arange(4, 12)[:, None]
    found = numpy(run(np.where(mask[..., None], x, 1e6).astype("float32"), mask))
    for row, length in enumerate(range(4, 12)):
        expected = by_loops(x[row, :length], layer)
        np.testing.assert_allclose(found[row, : len(expected)], expected, atol=2e-5)


def test_the_mask_is_subsampled_alike():
    inputs = keras.Input((None, 5))
    masked = made(strides=(2, 2))(keras.layers.Masking()(inputs))
    model = keras.Model(inputs, masked._keras_mask)
    x = np.ones((5, 9, 5), "float32")
    for row, length in enumerate((1, 4, 5, 8, 9)):
        x[row, length:] = 0
    counts = numpy(model(x)).sum(1)
    assert counts.tolist() == [1, 1, 2, 2, 3]  # a quarter, rounded up
    assert model.output_shape == (None, None)


def test_mistakes_are_told():
    with pytest.raises(UserError, match="`kernel_size` must be odd. Received: kernel_size=4"):
        ConvolutionalSubsampling(7, kernel_size=4)
    refused(r"at least one stride. Received: strides=\(\)", ConvolutionalSubsampling, 7, strides=())
    with pytest.raises(
        UserError, match="`strides` must be a positive integer. Received: strides=0"
    ):
        ConvolutionalSubsampling(7, strides=(2, 0))
