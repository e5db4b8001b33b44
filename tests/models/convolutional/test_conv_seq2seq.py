"""ConvSeq2Seq against its paper's equations, by loops; its window; its weight normalisation."""

import keras
import numpy as np
from keras import ops

from keras_attn.layers.convolutional.weight_normalization import (
    GatedConvolution,
    WeightNormalizedDense,
)
from keras_attn.models import ConvSeq2Seq
from tests.backends import quick
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import SOURCE, TARGET, assert_judged, logits
from tests.models.naive_recurrent import array, sigmoid, softmax

HALF = np.sqrt(0.5)


def dense(layer, x):
    direction = array(layer.direction)
    kernel = np.stack(
        [
            g * column / np.sqrt(sum(v * v for v in column))
            for g, column in zip(array(layer.length), direction.T, strict=True)
        ],
        axis=1,
    )
    return x @ kernel + array(layer.bias)


def convolved(layer, xs, first):
    """One position after the other; `first` is how far before itself a position looks."""
    result = []
    for i in range(len(xs)):
        seen = [
            xs[j] if 0 <= j < len(xs) else np.zeros_like(xs[0])
            for j in range(i - first, i - first + layer.kernel_size)
        ]
        a, b = np.split(dense(layer, np.concatenate(seen)), 2)
        result.append(a * sigmoid(b))
    return np.stack(result)


def embedded(embedding, positions, ids):
    return array(embedding.embeddings)[ids] + array(positions.embeddings)[: len(ids)]


def naive(model, source_ids, target_ids):
    """Gehring et al., 2017, equations 1 and 2 and sections 3.1 to 3.4."""
    e = embedded(model.source_embedding, model.source_positions, source_ids)
    encoder, decoder = model.encoder, model.decoder
    x = dense(encoder.input_projection, e)
    for layer in encoder.convolutions:
        x = (convolved(layer, x, layer.kernel_size // 2) + x) * HALF
    z = dense(encoder.output_projection, x)
    values, m = (z + e) * HALF, len(source_ids)
    g = embedded(model.target_embedding, model.target_positions, target_ids)
    x = dense(decoder.input_projection, g)
    for i, layer in enumerate(decoder.convolutions):
        h = convolved(layer, x, layer.kernel_size - 1)
        d = (dense(decoder.query_projections[i], h) + g) * HALF
        contexts = []
        for query in d:
            shares = softmax([query @ key for key in z])
            context = sum(share * value for share, value in zip(shares, values, strict=True))
            contexts.append(context * m * np.sqrt(1 / m))
        c = dense(decoder.context_projections[i], np.stack(contexts))
        x = ((h + c) * HALF + x) * HALF
    return dense(decoder.output_projection, x) @ array(model.output_embedding.embeddings).T


def tiny(**arguments):
    sizes = {"num_layers": 2, "hidden_dim": 6, "embedding_dim": 5, "learned_positions": 17}
    return spread_weights(ConvSeq2Seq(11, 13, **(sizes | arguments)))


def test_the_papers_equations():
    assert_judged(tiny(decoder_layers=3, kernel_size=5), naive, atol=3e-5)


def test_an_output_sees_as_far_as_the_windows_reach():
    """Two layers of three: five tokens, where self-attention would see all."""
    target = np.repeat([[1, 4, 8, 6, 3, 9, 5]], 8, axis=0).astype("int32")
    target[np.arange(7), np.arange(7)] = 10
    found = logits(tiny(), np.repeat(SOURCE[:1], 8, axis=0), target)[:, -1]
    moved = np.abs(found[:7] - found[7]).max(axis=-1)
    np.testing.assert_array_equal(moved > 1e-5, np.arange(7) >= 2, str(moved))


def test_the_state_of_a_hypothesis_is_a_window():
    model = tiny(kernel_size=5)
    state = model.initial_state(SOURCE)
    shapes = [tuple(window.shape) for window in state["hypothesis"]["windows"]]
    assert shapes == [(2, 4, 6)] * 2
    step = quick(model.step)
    for index in range(7):  # given for each row
        position = np.array([index, index], "int32")
        tokens = ops.convert_to_tensor(TARGET[:, index])
        found, state = step(tokens, state, ops.convert_to_tensor(position))
        assert [tuple(window.shape) for window in state["hypothesis"]["windows"]] == shapes
    np.testing.assert_allclose(numpy(found), logits(model)[:, -1], atol=3e-5)


def test_new_layers_keep_the_variance():
    x = np.random.default_rng(1).normal(size=(19, 31, 128)).astype("float32")
    for layer in (
        WeightNormalizedDense(67),
        GatedConvolution(67, 3),
        GatedConvolution(67, 3, True),
    ):
        deviation = numpy(layer(x))[:, 3:-3].std()
        # 1, and with a gate √(4 E[sigmoid(2n)²]) = 1.15, n normally distributed.
        assert 0.9 < deviation < 1.25
        lengths = numpy(ops.norm(layer.kernel(), axis=0))
        np.testing.assert_allclose(lengths, numpy(layer.length), rtol=1e-5)


def test_the_gradient_to_the_encoder_is_divided_by_the_attentions():
    """Half for each of keys and values, of each attention; the source embeddings get it whole."""
    from keras_attn.layers.convolutional.stacks import ConvolutionalEncoder

    x = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
    moved = {}
    for scale in (1.0, 0.125):
        layer = ConvolutionalEncoder(1, 7, 3, gradient_scale=scale, name="encoder")
        inputs = keras.Input((5, 6))
        model = spread_weights(keras.Model(inputs, layer(inputs)[0]))
        bias = layer.output_projection.bias
        before = numpy(bias)
        model.compile(keras.optimizers.SGD(0.01), "mse")
        model.fit(x, np.zeros_like(x), batch_size=2, verbose=0)
        moved[scale] = numpy(bias) - before
    np.testing.assert_allclose(moved[0.125], 0.125 * moved[1.0], rtol=1e-4, atol=1e-6)
