"""The encoder alone: masks, mechanisms, saving, and a classifier on top of it."""

import inspect

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import SequenceClassifier, TransformerEncoder
from keras_attn.validation import UserError
from tests.backends import thinned
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import SMALL, check_learns_of_sevens, check_padding
from tests.refusals import refused

TEXTS = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
INPUTS = {"token_ids": TEXTS}
VARIANTS = {
    "post-norm": {},
    "pre-norm, learned and rotary": {
        "norm_first": True,
        "learned_positions": 13,
        "rotary_positions": True,
    },
    "local": {"attention": layers.LocalAttention(2, 3, 3)},
    "global and local": {"attention": layers.GlobalLocalAttention(2, 3, 2, 2)},
    "LSH": {"attention": layers.LSHAttention(2, 3, 4, chunk_length=3, seed=1)},
    "linear": {"attention": layers.LinearAttention(2, 3)},
    "synthesizer": {"attention": layers.RandomSynthesizer(2, 3, 13)},
    "additive": {"attention": layers.AdditiveAttention(5)},
}


def built(**arguments):
    return spread_weights(TransformerEncoder(11, **(SMALL | arguments)))


@pytest.mark.parametrize("name", thinned(VARIANTS))
def test_padding_never_changes_a_real_token(name):
    model = built(**VARIANTS[name])
    assert model.output_shape == (None, None, 12)
    check_padding(model, INPUTS)


def test_what_follows_counts():
    changed = TEXTS.copy()
    changed[0, 4] = 10
    model = built()
    difference = np.abs(numpy(model({"token_ids": changed})) - numpy(model(INPUTS)))
    assert (difference[0].max(-1) > 1e-4).all()
    assert not difference[1].any()


def test_its_mask_reaches_what_comes_after():
    encoder = built()
    inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
    model = keras.Model(inputs, layers.SequencePooling()(encoder(inputs)))
    expected = numpy(encoder({"token_ids": TEXTS[1:, :3]}))[0].mean(0)
    np.testing.assert_allclose(numpy(model(INPUTS))[1], expected, atol=2e-5)


def test_the_shortest_of_its_lengths_counts():
    model = built(attention=layers.RandomSynthesizer(2, 3, 13), learned_positions=17)
    assert model.max_length == 13


def test_from_preset():
    model = TransformerEncoder.from_preset("encoder_tiny", 11, num_layers=1)
    config = model.get_config()
    assert (config["hidden_dim"], config["num_layers"]) == (128, 1)
    with pytest.raises(UserError, match="`preset` must be one of 'encoder_tiny'."):
        TransformerEncoder.from_preset("lm_tiny", 11)


@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
def test_a_classifier_never_sees_padding(pooling):
    model = spread_weights(SequenceClassifier(built(), 3, pooling))
    padded = np.pad(TEXTS, ((0, 1), (0, 4)))  # and a row of nothing else
    logits = numpy(model({"token_ids": padded}))
    assert logits.shape == (3, 3)
    assert np.isfinite(logits).all()
    alone = numpy(model({"token_ids": TEXTS[1:, :3]}))
    np.testing.assert_allclose(logits[1], alone[0], atol=2e-5)


def test_a_classifier_of_what_its_encoder_says():
    encoder = built()
    model = spread_weights(SequenceClassifier(encoder, 3, "max"))
    output = model.get_layer("output")
    vectors = numpy(encoder({"token_ids": TEXTS[:1]}))[0].max(0)
    expected = vectors @ numpy(output.kernel) + numpy(output.bias)
    np.testing.assert_allclose(numpy(model(INPUTS))[0], expected, atol=1e-5)


def test_a_classifier_learns_with_nothing_but_padding_among_its_rows():
    encoder = TransformerEncoder(11, **(SMALL | {"num_layers": 1, "norm_first": True}))
    check_learns_of_sevens(encoder, epochs=6)


def test_a_classifiers_config_holds_every_argument():
    model = SequenceClassifier(
        built(), 3, "max", 0.3, dtype="bfloat16", name="mine", trainable=False
    )
    config = model.get_config()
    assert set(config) == set(inspect.signature(SequenceClassifier.__init__).parameters) - {"self"}
    copy = SequenceClassifier.from_config(config)
    assert copy.get_config() == config
    assert copy.get_layer("output").compute_dtype == "bfloat16"
    assert copy.encoder.compute_dtype == "float32"


def test_mistakes_are_told():
    encoder = built()
    refused("Received: pooling='sum'", SequenceClassifier, encoder, 3, "sum")
    refused("Received: num_classes=0", SequenceClassifier, encoder, 0)
    refused("`encoder` must be a model. Received: encoder='bert'", SequenceClassifier, "bert", 3)
    refused("Received: num_heads=5, hidden_dim=12", built, num_heads=5)
