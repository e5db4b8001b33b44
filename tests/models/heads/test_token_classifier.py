"""The head that gives each token a class; `transformers` judges it in tests/convert."""

import functools

import numpy as np
import pytest

from keras_attn.models import Bert, PatchEncoder, TokenClassifier, TransformerEncoder
from tests.backends import named
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

SIZES = {"num_layers": 1, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
TEXTS = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
ENCODERS = {
    "BERT": lambda **given: Bert(11, **(SIZES | {"max_length": 13} | given)),
    "sinusoids, pre-norm": lambda **given: TransformerEncoder(
        11, **(SIZES | {"norm_first": True} | given)
    ),
}


@functools.cache
def built(encoder="BERT", **arguments):
    """A model with random weights that no test may change."""
    return spread_weights(TokenClassifier(ENCODERS[encoder](), 5, **arguments))


@pytest.mark.parametrize("name", named(ENCODERS, on_jax=["BERT"]))
def test_logits_worked_out(name):
    model = built(name)
    output = model.get_layer("output")
    assert np.abs(numpy(output.bias)).min() > 0
    vectors = numpy(model.encoder({"token_ids": TEXTS}))
    expected = vectors @ numpy(output.kernel) + numpy(output.bias)
    logits = numpy(model({"token_ids": TEXTS}))
    assert logits.shape == (2, 5, 5)
    assert model.output_shape == (None, None, 5)
    np.testing.assert_allclose(logits, expected, atol=1e-4)


@pytest.mark.parametrize("name", named(ENCODERS, on_jax=["BERT"]))
def test_padding_never_changes_a_real_token(name):
    model = built(name)
    padded = numpy(model({"token_ids": np.pad(TEXTS, ((0, 1), (0, 6)))}))
    assert np.isfinite(padded).all()
    np.testing.assert_allclose(
        padded[1, :3], numpy(model({"token_ids": TEXTS[1:, :3]}))[0], atol=1e-4
    )


def test_vectors_are_dropped_in_training_alone():
    model = built(dropout=0.5)
    inputs = {"token_ids": TEXTS}
    plain, output = numpy(model(inputs)), model.get_layer("output")
    np.testing.assert_array_equal(plain, numpy(model(inputs, training=False)))
    assert np.abs(numpy(model(inputs, training=True)) - plain).max() > 0.1
    assert model.get_layer("vector_dropout").rate == 0.5
    assert output.units == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: ("bert", 3), "`encoder` must be a model. Received: encoder='bert'"),
        (lambda: (ENCODERS["BERT"](), 0), "Received: num_classes=0"),
        (lambda: (ENCODERS["BERT"](), 3, 1.0), "Received: dropout=1.0"),
        (
            lambda: (PatchEncoder.from_preset("patch_tiny", num_layers=1), 3),
            "over token ids. Received: encoder='PatchEncoder', input_name='images'",
        ),
    ],
)
def test_mistakes_are_told(arguments, message):
    refused(message, TokenClassifier, *arguments())
