"""The encoder over features: front ends, masks, mechanisms, saving, a classifier on top of it."""

import inspect

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import FeatureEncoder, SequenceClassifier, TransformerEncoder
from keras_attn.validation import UserError
from tests.backends import thinned
from tests.generation.toy_models import compiled
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

SIZES = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
FEATURES = numbers(1, 2, 11, 5)
MASK = np.arange(11) < np.array([[11], [6]])


def subsampling(**arguments):
    return layers.ConvolutionalSubsampling(12, **arguments)


VARIANTS = {
    "projection": {},
    "convolutions": {"front_end": subsampling(strides=(1, 2))},
    "convolutions, pre-norm, learned and rotary": {
        "front_end": subsampling(kernel_size=5),
        "norm_first": True,
        "learned_positions": 13,
        "rotary_positions": True,
    },
    "local": {"front_end": subsampling(strides=[2]), "attention": layers.LocalAttention(2, 3, 3)},
    "LSH": {"attention": layers.LSHAttention(2, 3, 4, chunk_length=3, seed=1)},
    "linear": {"attention": layers.LinearAttention(2, 3)},
    "synthesizer": {"attention": layers.RandomSynthesizer(2, 3, 19)},
}


def built(**arguments):
    return spread_weights(FeatureEncoder(5, **(SIZES | arguments)))


@pytest.mark.parametrize("name", thinned(VARIANTS))
def test_padding_never_changes_a_real_vector(name):
    model = built(**VARIANTS[name])
    run = compiled(lambda features, mask: model({"features": features, "padding_mask": mask}))
    noise = np.where(MASK[..., None], FEATURES, np.float32(1e6))
    padded = numpy(run(np.pad(noise, ((0, 0), (0, 6), (0, 0))), np.pad(MASK, ((0, 0), (0, 6)))))
    for row, length in enumerate((11, 6)):
        alone = numpy(model({"features": FEATURES[row : row + 1, :length]}))[0]
        assert len(alone) < length or "front_end" not in VARIANTS[name]
        np.testing.assert_allclose(padded[row, : len(alone)], alone, atol=3e-5)


def test_the_blocks_of_the_encoder_of_tokens():
    """One-hot features, projected by a table of tokens, are the tokens."""
    tokens = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
    judge = spread_weights(TransformerEncoder(11, **SIZES))
    model = FeatureEncoder(11, **SIZES)
    embedding, *blocks = judge.get_weights()
    model.set_weights([embedding * 12**0.5, np.zeros(12), *blocks])
    inputs = {"features": np.eye(11, dtype="float32")[tokens], "padding_mask": tokens != 0}
    found, expected = numpy(model(inputs)), numpy(judge({"token_ids": tokens}))
    np.testing.assert_allclose(found[tokens != 0], expected[tokens != 0], atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_classifier_never_sees_padding(pooling):
    model = spread_weights(SequenceClassifier(built(front_end=subsampling()), 3, pooling))
    noise = np.where(MASK[..., None], FEATURES, np.float32("nan"))
    found = numpy(model({"features": noise, "padding_mask": MASK}))
    alone = {"features": FEATURES[1:, :6], "padding_mask": MASK[1:, :6]}
    np.testing.assert_allclose(found[1], numpy(model(alone))[0], atol=2e-5)
    vectors = numpy(model.encoder({"features": FEATURES[1:, :6]}))[0]
    assert vectors.shape == (2, 12)
    pooled = vectors.mean(0) if pooling == "mean" else vectors.max(0)
    output = model.get_layer("output")
    expected = pooled @ numpy(output.kernel) + numpy(output.bias)
    np.testing.assert_allclose(found[1], expected, atol=2e-5)


def test_config_holds_every_argument():
    model = built(
        front_end=subsampling(strides=(3,)),
        activation=keras.activations.silu,
        dtype="mixed_bfloat16",
        name="mine",
    )
    config = model.get_config()
    assert set(config) == set(inspect.signature(FeatureEncoder.__init__).parameters) - {"self"}
    assert FeatureEncoder.from_config(config).get_config() == config
    assert model.front_end.dtype_policy.name == "mixed_bfloat16"


def test_mistakes_are_told():
    with pytest.raises(UserError, match="of size `hidden_dim`. Received: front_end=7, hidden_dim="):
        built(front_end=layers.ConvolutionalSubsampling(7))
    refused("`front_end` must be a layer. Received: front_end='conv'", built, front_end="conv")
    refused("Received: features=0", FeatureEncoder, 0, **SIZES)
