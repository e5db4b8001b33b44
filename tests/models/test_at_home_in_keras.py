"""Every family in a plain script of Keras: ids of any number type, `fit` without a warning."""

import warnings

import keras
import numpy as np
import pytest

from keras_attn import models
from tests.backends import named
from tests.layers.judges import numpy
from tests.models.every_family import EVERY, bert, public_classes

WITH_IDS = [name for name, (_, inputs) in EVERY.items() if any("ids" in key for key in inputs)]
ON_JAX = ["Transformer", "Bert", "GPT2", "SequenceClassifier, mean", "MaskedLanguageModel"]


def as_type(inputs, dtype):
    return {key: x.astype(dtype) if key.endswith("ids") else x for key, x in inputs.items()}


def test_every_public_model_is_here():
    assert public_classes() == {type(make()).__name__ for make, _ in EVERY.values()}


@pytest.mark.parametrize("name", named(WITH_IDS, set(ON_JAX) & set(WITH_IDS), others=2))
def test_ids_of_any_number_type(name):
    make, inputs = EVERY[name]
    model = make()
    expected = [numpy(x) for x in keras.tree.flatten(model(inputs))]
    given = {
        key: keras.Input(x.shape[1:], name=key, dtype=None if key.endswith("ids") else x.dtype)
        for key, x in inputs.items()
    }
    of_floats = keras.Model(given, model(given))
    for found in (
        *(model(as_type(inputs, dtype)) for dtype in ("float32", "float64", "int64", "uint8")),
        model({key: keras.ops.convert_to_tensor(x) for key, x in as_type(inputs, float).items()}),
        of_floats(as_type(inputs, "float32")),
    ):
        for one, other in zip(keras.tree.flatten(found), expected, strict=True):
            np.testing.assert_allclose(numpy(one), other, atol=1e-6)


class Stranger(keras.Model):
    """Somebody's model around one of ours."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)


def fitted(model, inputs):
    """Trains by one step, with every warning an error."""
    outputs = model(inputs)
    model.compile(keras.optimizers.SGD(1e-2), loss="mse")
    targets = keras.tree.map_structure(lambda x: np.zeros(x.shape), outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(inputs, targets, verbose=0)


@pytest.mark.parametrize("name", named(EVERY, ON_JAX, others=8))
def test_fit_warns_of_nothing(name):
    make, inputs = EVERY[name]
    fitted(make(), inputs)


@pytest.mark.parametrize("name", ["Bert", "SequenceClassifier, mean", "SequenceClassifier, pooler"])
def test_fit_warns_of_nothing_inside_of_another_model(name):
    make, inputs = EVERY[name]
    fitted(Stranger(make()), inputs)


@pytest.mark.parametrize("pooling", ["mean", "pooler"])
def test_a_pooler_is_trained_where_it_is_used(pooling, tmp_path):
    encoder = bert()
    model = models.SequenceClassifier(encoder, 3, pooling)
    before = [numpy(weight) for weight in encoder.pooler.weights]
    encoder.trainable = False
    assert not encoder.pooler.trainable_weights
    encoder.trainable = True
    assert len(encoder.pooler.trainable_weights) == (2 if pooling == "pooler" else 0)
    fitted(model, EVERY["Bert, one segment"][1])
    after = [numpy(weight) for weight in encoder.pooler.weights]
    changed = [not np.array_equal(*pair) for pair in zip(before, after, strict=True)]
    assert changed == [pooling == "pooler"] * 2
    # Saved it is with the rest, trained or not.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(loaded.encoder.pooler.weights, encoder.pooler.weights, strict=True):
        np.testing.assert_array_equal(numpy(one), numpy(other))
    assert len(loaded.trainable_weights) == len(model.trainable_weights)
