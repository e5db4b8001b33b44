"""Signatures, docstrings and configurations of attention layers and of their subclasses."""

import inspect
import json

import keras
import pytest

from keras_attn import layers
from keras_attn.validation import UserError
from tests.harness import assert_saved, numbers, own_arguments
from tests.refusals import refused

X = numbers(1, 2, 5, 8)
OF_PROJECTIONS = ["value_dim", "use_bias", "output_shape", "kernel_initializer"]
OF_PROJECTIONS += ["bias_initializer", "kernel_regularizer", "bias_regularizer"]
OF_PROJECTIONS += ["activity_regularizer", "kernel_constraint", "bias_constraint"]
OF_PROJECTIONS += ["output_initializer"]
MECHANISMS = [
    layers.LocalAttention,
    layers.LSHAttention,
    layers.LinearAttention,
    layers.GlobalLocalAttention,
    layers.MultiHeadAttention,
    layers.RecurrentMemoryAttention,
    layers.CompressiveMemoryAttention,
    layers.DenseSynthesizer,
    layers.FactorizedDenseSynthesizer,
    layers.RandomSynthesizer,
    layers.FactorizedRandomSynthesizer,
    layers.SynthesizerMixture,
]


@pytest.mark.parametrize("layer", MECHANISMS, ids=lambda layer: layer.__name__)
def test_mechanisms_list_the_options_of_their_projections(layer):
    parameters = inspect.signature(layer).parameters
    assert set(OF_PROJECTIONS) <= set(parameters)
    assert list(parameters)[-1] == "kwargs"  # of Keras
    documentation = inspect.getdoc(layer)
    for name in parameters:
        assert documentation.count(f"\n    {name}: ") == (0 if name == "kwargs" else 1), name
    assert documentation.count("\n    **kwargs: Arguments of `keras.layers.Layer`.") == 1
    call = documentation.partition("Call arguments:\n")[2].partition("\n\n")[0]
    named = [line.split(":")[0].strip() for line in call.splitlines() if line[4] != " "]
    assert named == list(inspect.signature(layer.call).parameters)[1:]
    assert len(own_arguments(layer)) <= 14


def test_the_signature_of_local_attention():
    own = ["num_heads", "key_dim", "sliding_window", "dropout", "seed", "relative_positions"]
    signature = inspect.signature(layers.LocalAttention)
    assert list(signature.parameters) == [*own, *OF_PROJECTIONS, "kwargs"]
    assert signature.parameters["use_bias"].default is True
    assert signature.parameters["use_bias"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.parameters["sliding_window"].default is inspect.Parameter.empty


def test_arguments_of_parents_are_given_by_their_places():
    layer = layers.LuongAttention("dot", None, "he_normal", 0.2, 7)
    assert (layer.dropout, layer.seed) == (0.2, 7)
    layer = layers.FactorizedDenseSynthesizer(2, 3, 12, 4, 0.2, 7)
    assert (layer.factor, layer.dropout, layer.seed) == (4, 0.2, 7)
    layer = layers.MultiHeadAttention(2, 3, 5, 0.1, False, 7, 1, 4, False)
    config = layer.get_config()
    names = ("value_dim", "dropout", "use_bias", "output_shape", "attention_axes")
    names += ("sliding_window", "flash_attention")
    assert [config[name] for name in names] == [5, 0.1, False, 7, 1, 4, False]


def test_missing_and_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="LocalAttention.*sliding_window"):
        layers.LocalAttention(2, 3)
    with pytest.raises(TypeError, match=r"too many positional.*without a name: num_heads,"):
        layers.LocalAttention(2, 3, 4, 0.1, 7, None, 5)
    with pytest.raises(ValueError, match="LocalAttention.*'radius'"):
        layers.LocalAttention(2, 3, 4, radius=5)


def test_a_memory_takes_no_axes():
    assert "attention_axes" not in inspect.signature(layers.RecurrentMemoryAttention).parameters
    assert "attention_axes" not in layers.RecurrentMemoryAttention(2, 3, 4).get_config()
    with pytest.raises(UserError, match="`attention_axes` must not be given.*attention_axes=1"):
        layers.RecurrentMemoryAttention(2, 3, 4, attention_axes=1)


@keras.saving.register_keras_serializable(package="tests")
class Scaled(layers.MultiHeadAttention):
    """As users write it: further arguments, and a `get_config` of its own."""

    def __init__(self, factor, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._scaled_by = factor

    def call(self, query, value, key=None, **options):
        return super().call(query, value, key, **options) * self._scaled_by

    def get_config(self):
        return super().get_config() | {"factor": self._scaled_by}


@keras.saving.register_keras_serializable(package="tests")
class Named(layers.LocalAttention):
    """Further arguments that are kept as attributes, and no `get_config`."""

    def __init__(self, factor=1.0, *, shift=0.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self._shift = shift

    def call(self, query, value, key=None, **options):
        return super().call(query, value, key, **options) * self.factor + self._shift


@keras.saving.register_keras_serializable(package="tests")
class FixedHeads(layers.MultiHeadAttention):
    """Arguments of the parent that the class chooses itself."""

    def __init__(self, key_dim, **kwargs):
        super().__init__(num_heads=2, key_dim=key_dim, **kwargs)

    def get_config(self):
        config = super().get_config()
        del config["num_heads"]
        return config


DERIVED = {
    "own get_config": lambda: Scaled(3.0, 2, 4, use_bias=False, sliding_window=3),
    "none": lambda: Named(2.0, shift=0.5, num_heads=2, key_dim=4, sliding_window=3, use_bias=False),
    "none, defaults": lambda: Named(num_heads=2, key_dim=4, sliding_window=3),
    "fixed": lambda: FixedHeads(4, kernel_initializer="he_normal"),
}


@pytest.mark.parametrize("case", DERIVED)
def test_classes_of_users_are_copied_and_saved(case, tmp_path):
    layer = DERIVED[case]()
    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, layer(inputs, inputs))
    config = layer.get_config()
    json.dumps(keras.saving.serialize_keras_object(config))
    assert type(layer).from_config(config).get_config() == config
    assert_saved(model, X, tmp_path)


def test_a_class_of_a_user_is_a_template_of_blocks():
    block = layers.TransformerEncoderBlock(Scaled(3.0, 2, 4), layers.FeedForward(11))
    assert block.attention._scaled_by == 3.0
    assert block.attention.num_heads == 2


class Forgetful(layers.LocalAttention):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)


def test_an_argument_that_is_not_kept_is_named():
    layer = Forgetful(2.0, num_heads=2, key_dim=3, sliding_window=4)
    refused("Forgetful must keep its argument.*'factor'", layer.get_config)


class Quarter(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None):
        return keras.ops.full(shape, 0.25, dtype)


def test_custom_objects_are_found():
    given = layers.LinearAttention(2, 4, kernel_initializer=Quarter())
    config = keras.saving.serialize_keras_object(given.get_config())
    objects = {"Quarter": Quarter}
    copy = layers.LinearAttention.from_config(config, custom_objects=objects)
    assert isinstance(copy.kernel_initializer, Quarter)
    description = keras.saving.serialize_keras_object(given)
    copy = keras.saving.deserialize_keras_object(description, custom_objects=objects)
    assert isinstance(copy.kernel_initializer, Quarter)


class OwnPositions(layers.RotaryEmbedding):
    pass


def test_custom_layers_inside_are_found():
    given = layers.MultiHeadAttention(2, 4, relative_positions=OwnPositions())
    description = keras.saving.serialize_keras_object(given)
    objects = {"OwnPositions": OwnPositions}
    copy = keras.saving.deserialize_keras_object(description, custom_objects=objects)
    assert isinstance(copy.relative_positions, OwnPositions)
    copy = layers.MultiHeadAttention.from_config(given.get_config(), custom_objects=objects)
    assert isinstance(copy.relative_positions, OwnPositions)


def test_configurations_follow_the_layer():
    layer = layers.MultiHeadAttention(2, 4, dropout=0.1)
    layer.sliding_window = 3
    assert layer.get_config()["sliding_window"] == 3
