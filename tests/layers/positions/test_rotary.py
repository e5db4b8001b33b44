"""RotaryEmbedding: the paper's rotation, distances, an independent judge, decoding step by step."""

import cmath

import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention, RotaryEmbedding
from tests.harness import numpy
from tests.refusals import refused

RNG = np.random.default_rng(0)


def vectors(*shape):
    return RNG.normal(size=shape).astype("float32")


def test_turns_pairs_by_the_angles_of_the_paper():
    x = vectors(2, 3, 7, 10)
    found = numpy(RotaryEmbedding(max_wavelength=100.0)(x))
    for position in range(7):
        for pair in range(5):
            turn = cmath.exp(1j * position * 100.0 ** (-2 * pair / 10))
            first, second = x[..., position, pair], x[..., position, pair + 5]
            turned = (first + 1j * second) * turn
            np.testing.assert_allclose(found[..., position, pair], turned.real, atol=1e-5)
            np.testing.assert_allclose(found[..., position, pair + 5], turned.imag, atol=1e-5)


def test_products_see_distances_alone():
    query, key = vectors(1, 1, 1, 6), vectors(1, 1, 1, 6)
    rotate = RotaryEmbedding()

    def product(at, to):
        rotated = rotate(query, positions=np.array([at])), rotate(key, positions=np.array([to]))
        return float(np.sum(numpy(rotated[0]) * numpy(rotated[1])))

    assert product(3, 5) == pytest.approx(product(1013, 1015), abs=1e-3)
    assert product(3, 5) != pytest.approx(product(3, 6), abs=1e-2)


def test_scaling_divides_positions():
    x = vectors(1, 2, 5, 6)
    found = numpy(RotaryEmbedding(scaling_factor=4.0)(x, positions=4 * np.arange(5)))
    np.testing.assert_allclose(found, numpy(RotaryEmbedding()(x)), atol=1e-5)


@pytest.mark.tensorflow
def test_scaled_angles_of_float64():
    x = np.zeros((1, 1, 5, 2))
    x[..., 0] = 1.0
    found = numpy(RotaryEmbedding(scaling_factor=3.5, dtype="float64")(x))
    np.testing.assert_allclose(found[0, 0, :, 0], np.cos(np.arange(5) / 3.5), rtol=0, atol=1e-15)


def test_positions_of_each_sequence():
    x = vectors(2, 3, 5, 6)
    rotate = RotaryEmbedding()
    found = numpy(rotate(x, positions=np.array([[0], [11]]) + np.arange(5)))
    np.testing.assert_allclose(found[0], numpy(rotate(x))[0], atol=1e-6)
    shifted = numpy(rotate(x, positions=np.arange(11, 16)))
    np.testing.assert_allclose(found[1], shifted[1], atol=1e-6)


def test_bfloat16_tells_late_positions_apart():
    x = np.ones((1, 1, 1024, 64), "float32")
    found = numpy(RotaryEmbedding(dtype="mixed_bfloat16")(x))[0, 0].astype("float32")
    np.testing.assert_allclose(found, numpy(RotaryEmbedding()(x))[0, 0], atol=2**-6)


def test_mistakes_are_told():
    refused("even. Received: width=7", RotaryEmbedding(), vectors(1, 1, 2, 7))
    refused(r"`scaling_factor` .* Received: scaling_factor=0", RotaryEmbedding, scaling_factor=0)
    refused(r"`max_wavelength` .* Received: max_wavelength=-1", RotaryEmbedding, max_wavelength=-1)
    layer = MultiHeadAttention(2, 6, attention_axes=(1, 2), relative_positions=RotaryEmbedding())
    x = vectors(1, 2, 3, 5)
    refused("relative positions need a single attended axis", layer, x, x)


def attention(**arguments):
    return MultiHeadAttention(2, 6, relative_positions=RotaryEmbedding(50.0), **arguments)


def test_attention_rotates_queries_and_keys():
    layer = attention()
    x = vectors(3, 7, 5)
    output, scores = layer(x, x, return_attention_scores=True)
    plain = MultiHeadAttention(2, 6)
    plain.build(x.shape, x.shape)
    plain.set_weights(layer.get_weights())
    heads = plain._project(x, x, None)
    turned = {role: numpy(RotaryEmbedding(50.0)(heads[role])) for role in ("query", "key")}
    logits = turned["query"] @ np.swapaxes(turned["key"], -1, -2) / 6**0.5
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(numpy(scores), expected, atol=1e-5)
    assert numpy(output).shape == (3, 7, 5)


def test_shifting_a_sequence_changes_nothing():
    layer = attention()
    x = vectors(1, 7, 5)
    mask = np.arange(7)[None] >= 3
    late = numpy(layer(x, x, value_mask=mask))[:, 3:]
    np.testing.assert_allclose(late, numpy(layer(x[:, 3:], x[:, 3:])), atol=1e-5)


def test_not_for_another_sequence():
    layer = attention()
    layer.build((3, 7, 5), (3, 4, 5))
    refused("are for self-attention", layer.project_source, vectors(3, 4, 5))
