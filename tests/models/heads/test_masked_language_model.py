"""The head over encoders that tells hidden tokens; `transformers` judges it in tests/convert."""

import functools
import math

import keras
import numpy as np
import pytest

from keras_attn.models import Bert, MaskedLanguageModel, TransformerEncoder
from tests.backends import named
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import check_padding
from tests.refusals import refused

SIZES = {"num_layers": 1, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
TEXTS = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
POSITIONS = np.array([[3, 0], [1, 0]], "int32")
INPUTS = {"token_ids": TEXTS, "positions": POSITIONS}
ENCODERS = {
    "BERT": lambda **given: Bert(11, **(SIZES | {"max_length": 13, "pooler": False} | given)),
    "sinusoids, pre-norm": lambda **given: TransformerEncoder(
        11, **(SIZES | {"norm_first": True} | given)
    ),
}


@functools.cache
def built(encoder="BERT", **arguments):
    """A model with random weights that no test may change."""
    return spread_weights(MaskedLanguageModel(ENCODERS[encoder](), **arguments))


@pytest.mark.parametrize("name", named(ENCODERS, on_jax=["BERT"]))
def test_logits_worked_out(name):
    model = built(name)
    vectors = numpy(model.encoder({"token_ids": TEXTS}))
    chosen = np.stack([row[places] for row, places in zip(vectors, POSITIONS, strict=True)])
    x = chosen @ numpy(model.transform.kernel) + numpy(model.transform.bias)
    x = x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    x = x * numpy(model.norm.gamma) + numpy(model.norm.beta)
    expected = x @ numpy(model.encoder.embedding.embeddings).T + numpy(model.bias.bias)
    assert np.abs(numpy(model.bias.bias)).min() > 0
    np.testing.assert_allclose(numpy(model(INPUTS)), expected, atol=1e-4)


def test_the_embedding_is_the_encoders():
    model = built()
    assert len(model.weights) == len(model.encoder.weights) + 5
    assert model.output_shape == (None, None, 11)
    assert (model.hidden_dim, model.max_length) == (12, 13)


@pytest.mark.parametrize("as_array", [np.asarray, lambda array: array.astype("int64")])
def test_without_positions_all_are_told(as_array):
    model = built()
    everywhere = numpy(model({"token_ids": as_array(TEXTS)}))
    assert everywhere.shape == (2, 5, 11)
    np.testing.assert_array_equal(numpy(model({"token_ids": TEXTS, "positions": None})), everywhere)
    for row, places in enumerate(POSITIONS):
        np.testing.assert_allclose(numpy(model(INPUTS))[row], everywhere[row, places], atol=1e-4)


def test_padding_never_changes_a_real_token():
    check_padding(built(), {"token_ids": TEXTS}, atol=1e-4)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (7, "`encoder` must be a model. Received: encoder=7"),
        (keras.Sequential(), "must have a token embedding, .* Received: encoder='Sequential'"),
    ],
)
def test_mistakes_are_told(encoder, message):
    refused(message, MaskedLanguageModel, encoder)
