"""Masks that Keras hands over: its wrappers, its containers, and layers over one sequence."""

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.convolutional.stacks import ConvolutionalEncoder
from keras_attn.models import FeatureEncoder
from tests.backends import named, thinned
from tests.harness import assert_close, numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

# Documents of three sentences of up to six words.
IDS = np.array(
    [
        [[1, 2, 0, 0, 0, 0], [3, 4, 5, 0, 0, 0], [6, 0, 0, 0, 0, 0]],
        [[7, 8, 9, 1, 2, 3], [4, 0, 0, 0, 0, 0], [5, 6, 0, 0, 0, 0]],
    ]
)
WIDTH = 6


def attention(**options):
    return layers.MultiHeadAttention(2, 3, **options)


def feed_forward():
    return layers.FeedForward(11)


def encoder(inner=None, **options):
    return layers.TransformerEncoderBlock(inner or attention(), feed_forward(), **options)


MAKE = {
    "encoder": encoder,
    "encoder, pre-norm": lambda: encoder(norm_first=True),
    "encoder, local": lambda: encoder(layers.LocalAttention(2, 3, 2)),
    "encoder of Keras' attention": lambda: encoder(keras.layers.MultiHeadAttention(2, 3)),
    "decoder": lambda: layers.TransformerDecoderBlock(attention(), feed_forward()),
    "feed-forward": feed_forward,
    "pooling": lambda: layers.SequencePooling("mean"),
    "pooling, max": lambda: layers.SequencePooling("max"),
    "convolutional encoder": lambda: ConvolutionalEncoder(2, 5, 3),
    "subsampling": lambda: layers.ConvolutionalSubsampling(5),
    "recurrent": lambda: keras.layers.RNN(layers.IntraAttentionCell(5, 4)),
    "recurrent, both ways": lambda: keras.layers.Bidirectional(keras.layers.LSTM(5)),
    "sinusoids": layers.SinusoidalPositionEncoding,
    "learned positions": lambda: layers.LearnedPositionEmbedding(7),
    "rotary": layers.RotaryEmbedding,
    "normalization": layers.RMSNormalization,
}


def by_sentence(layer, embedded):
    """The layer applied to each sentence, with the mask that Keras propagates to it."""
    masking = keras.layers.Masking()  # zeros are padding
    slices = [layer(masking(embedded[:, i])) for i in range(IDS.shape[1])]
    return np.stack([numpy(keras.tree.flatten(x)[0]) for x in slices], axis=1)


def embedding():
    layer = keras.layers.Embedding(10, WIDTH, mask_zero=True)
    layer.build()
    table = numbers(3, 10, WIDTH)
    table[0] = 0  # so that `Masking` finds the same padding
    layer.set_weights([table])
    return layer


class First(keras.layers.Layer):
    """The first output of a layer with several."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def call(self, inputs, mask=None):
        return self.layer.call(inputs, mask=mask)[0]

    def compute_output_shape(self, input_shape):
        return input_shape


def made(name):
    """An embedding, what it makes of the documents, and a layer built upon it."""
    embed, layer = embedding(), MAKE[name]()
    embedded = numpy(embed(IDS))
    by_sentence(layer, embedded)
    is_keras = isinstance(layer, keras.layers.RNN | keras.layers.Bidirectional)
    return embed, embedded, layer if is_keras else spread_weights(layer)


@pytest.mark.parametrize(
    "name", named(MAKE, ["encoder", "decoder", "pooling", "convolutional encoder"], 3)
)
def test_time_distributed_as_each_slice(name):
    embed, embedded, layer = made(name)
    expected = by_sentence(layer, embedded)
    wrapped = First(layer) if name == "convolutional encoder" else layer
    ids = keras.Input(IDS.shape[1:], dtype="int32")
    model = keras.Model(ids, keras.layers.TimeDistributed(wrapped)(embed(ids)))
    assert_close(model.predict(IDS, verbose=0), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["encoder", "decoder", "pooling"])
def test_time_distributed_over_an_unknown_length(name):
    embed, embedded, layer = made(name)
    ids = keras.Input((None, IDS.shape[2]), dtype="int32")
    model = keras.Model(ids, keras.layers.TimeDistributed(layer)(embed(ids)))
    assert_close(model.predict(IDS, verbose=0), by_sentence(layer, embedded), atol=1e-5)


class Subclassed(keras.Model):
    def __init__(self, *parts):
        super().__init__()
        self.parts = list(parts)

    def call(self, inputs):
        for part in self.parts:
            inputs = part(inputs)
        return inputs


@pytest.mark.parametrize(
    "name", thinned(["encoder", "encoder, pre-norm", "decoder", "pooling"], 1, 2)
)
def test_models_of_all_kinds_propagate_one_mask(name):
    embed, _, layer = made(name)
    for ids in IDS:
        real = ids != 0
        # Each sentence alone, without its padding.
        alone = [numpy(layer(numpy(embed(row[row != 0]))[None]))[0] for row in ids]
        inputs = keras.Input((None,), dtype="int32")
        vectors = keras.Input((None, WIDTH))
        for model, given in (
            (keras.Sequential([embed, layer]), ids),
            (keras.Model(inputs, layer(embed(inputs))), ids),
            (Subclassed(embed, layer), ids),
            (keras.Sequential([keras.layers.Masking(), layer]), numpy(embed(ids))),
            (keras.Model(vectors, layer(keras.layers.Masking()(vectors))), numpy(embed(ids))),
        ):
            found = model.predict(given, verbose=0)
            for row, expected, mask in zip(found, alone, real, strict=True):
                row = row if name == "pooling" else row[mask]
                assert_close(row, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["encoder", "encoder of Keras' attention", "decoder"])
def test_the_mask_of_keras_and_the_padding_mask_both_count(name):
    x, (*_, layer) = numbers(1, 2, 5, WIDTH), made(name)
    mask = np.array([[True, True, True, False, True], [True] * 5])
    padding = np.array([[True, True, True, True, False], [False] + [True] * 4])
    expected = numpy(layer(x, padding_mask=mask & padding))
    for found in (
        layer(x, padding_mask=padding, mask=mask),
        layer.call(keras.ops.convert_to_tensor(x), padding_mask=padding, mask=mask),
    ):
        both = mask & padding
        assert_close(numpy(found)[both], expected[both], atol=1e-5)


@pytest.mark.parametrize("name", ["pooling", "convolutional encoder", "subsampling"])
def test_masks_of_one_sequence_are_read_like_all(name):
    *_, layer = made(name)
    x, mask = numbers(1, 2, 5, WIDTH), np.arange(5) < np.array([[3], [5]])
    first = keras.tree.flatten(layer(x, mask=mask))[0]
    assert_close(keras.tree.flatten(layer(x, mask=mask.astype("float32")))[0], first, atol=1e-6)
    message = "`mask` must hold 1 .* Received: mask=.-10000"
    refused(message, layer, x, mask=np.where(mask, 0, -10000))


def test_the_padding_mask_of_a_model_is_read_like_all():
    model = FeatureEncoder(
        WIDTH, num_layers=1, hidden_dim=6, num_heads=2, intermediate_dim=7, dropout=0
    )
    x, mask = numbers(1, 2, 5, WIDTH), np.arange(5) < np.array([[3], [5]])
    expected = numpy(model({"features": x, "padding_mask": mask}))
    found = numpy(model({"features": x, "padding_mask": mask.astype("float32")}))
    assert_close(found, expected, atol=1e-6)
    added = {"features": x, "padding_mask": np.where(mask, 0, -10000)}
    refused("`padding_mask` must hold 1 .*=.-10000", model, added)


@pytest.mark.parametrize(
    "layer", [attention(), layers.AdditiveAttention(4), layers.LinearAttention(2, 3)]
)
def test_masks_of_a_projected_source_are_read_like_all(layer):
    x, mask = numbers(1, 2, 5, WIDTH), np.arange(5) < np.array([[3], [5]])
    layer(x, x)
    expected, found = (layer.project_source(x, value_mask=m) for m in (mask, mask.astype(float)))
    assert_close(found, expected, atol=1e-6)
    added = np.where(mask, 0, -10000)
    refused("`value_mask` must hold 1 .*=.-10000", layer.project_source, x, value_mask=added)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compilers
@pytest.mark.parametrize("name", ["encoder", "reversible"])
def test_a_masked_block_is_trained_compiled(name):
    ids = keras.Input((6,), dtype="int32")
    x = layers.TokenEmbedding(10, WIDTH, mask_zero=True)(ids)
    if name == "encoder":
        x = MAKE["encoder"]()(x)
    else:
        block = layers.ReversibleBlock(attention(), feed_forward())
        x = keras.layers.Average()(layers.ReversibleStack([block])(x, x))
    model = keras.Model(ids, keras.layers.Dense(1)(layers.SequencePooling("mean")(x)))
    model.compile("adam", "mse", jit_compile=True)
    losses = model.fit(IDS.reshape(6, 6), np.ones((6, 1)), epochs=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    assert losses[1] < losses[0]
