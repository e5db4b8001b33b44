"""Every family in a plain script of Keras: ids of any number type, `fit` without a warning."""

import inspect
import json
import warnings

import keras
import numpy as np
import pytest

from keras_attn import layers, models
from tests.backends import named, thinned
from tests.harness import assert_close, assert_same, numpy
from tests.layers.judges import spread_weights
from tests.models.every_family import EVERY, bert, public_classes

WITH_IDS = [name for name, (_, inputs) in EVERY.items() if any("ids" in key for key in inputs)]
ON_JAX = ["Transformer", "Bert", "GPT2", "SequenceClassifier, mean", "MaskedLanguageModel"]


def as_type(inputs, dtype):
    return {key: x.astype(dtype) if key.endswith("ids") else x for key, x in inputs.items()}


def test_every_public_model_is_here():
    assert public_classes() == {type(make()).__name__ for make, _ in EVERY.values()}


@pytest.mark.parametrize("name", EVERY)
def test_config_holds_every_argument(name):
    plain = EVERY[name][0]()
    given = {"dtype": "mixed_bfloat16", "name": "mine", "trainable": False}
    if "activation" in plain.get_config():
        given["activation"] = keras.activations.silu
    for argument in ("attention", "encoder_attention", "self_attention"):
        if plain.get_config().get(argument, "none") is None:
            given[argument] = layers.RandomSynthesizer(2, 3, 13)
    model = type(plain).from_config(plain.get_config() | given)
    config = model.get_config()
    assert set(config) == set(inspect.signature(type(plain).__init__).parameters) - {"self"}
    assert (config["name"], config["trainable"]) == ("mine", False)
    assert config.get("activation", "silu") == "silu"
    json.dumps(config)
    copy = type(plain).from_config(config)
    assert copy.get_config() == config
    assert (copy.name, copy.trainable) == ("mine", False)
    parts = [copy.encoder] if "encoder" in config else getattr(copy, "members", [])
    of_parts = [layer for part in parts for layer in part._flatten_layers()]
    assert {layer.compute_dtype for layer in of_parts} <= {"float32"}
    beside = copy.pooler if isinstance(copy, models.PooledEncoder) else []
    every = [*copy.layers, *beside]
    own = [layer for layer in every if layer.weights and layer not in of_parts]
    assert {layer.compute_dtype for layer in own} == (
        set() if "members" in config else {"bfloat16"}
    )


ENCODERS = (
    "TransformerEncoder",
    "Bert",
    "MaskedLanguageModel",
    "TokenClassifier",
    "SequenceClassifier, mean",
    "SequenceClassifier, pooler",
    "PatchEncoder",
)


@pytest.mark.parametrize("dtype", thinned(["mixed_bfloat16", "mixed_float16"]))
@pytest.mark.parametrize("name", ENCODERS)
def test_mixed_precision(name, dtype):
    make, inputs = EVERY[name]
    plain = spread_weights(make())
    keras.config.set_dtype_policy(dtype)
    try:
        mixed = make()
    finally:
        keras.config.set_dtype_policy("float32")
    mixed.set_weights(plain.get_weights())
    outputs, expected = mixed(inputs), numpy(plain(inputs))
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype.removeprefix("mixed_")
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    assert_close(numpy(outputs).astype("float32"), expected, atol=0.06 * np.abs(expected).max())
    mixed.compile("sgd", "mse")
    scaled = isinstance(mixed.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scaled == (dtype == "mixed_float16")


@pytest.mark.parametrize("name", named(WITH_IDS, set(ON_JAX) & set(WITH_IDS), others=4))
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
        assert_close(found, expected, atol=1e-6)


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


@pytest.mark.parametrize("name", named(EVERY, ON_JAX, others=20))
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
    assert_same(loaded.encoder.pooler.weights, encoder.pooler.weights)
    assert len(loaded.trainable_weights) == len(model.trainable_weights)


def test_the_summary_of_a_preset_says_that_it_is_random(capsys):
    model = models.Bert.from_preset("bert_tiny", 100)
    model.summary()
    assert capsys.readouterr().out.startswith("bert_tiny: randomly initialized, unless trained")
    models.Bert.from_config(model.get_config()).summary()
    assert "randomly" not in capsys.readouterr().out
