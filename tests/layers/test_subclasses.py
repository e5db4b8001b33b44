"""Subclasses that users write, each with a `get_config` as Keras' guides show it."""

import keras
import pytest

from keras_attn.layers import FeedForward, MultiHeadAttention, TransformerEncoderBlock
from keras_attn.models import TransformerEncoder
from tests.harness import assert_saved, numbers

X = numbers(1, 2, 5, 6)


@keras.saving.register_keras_serializable(package="tests")
class SizedBlock(TransformerEncoderBlock):
    """Makes its parts itself."""

    def __init__(self, width, **kwargs):
        super().__init__(MultiHeadAttention(2, width), FeedForward(2 * width), **kwargs)
        self.width = width

    def get_config(self):
        config = super().get_config()
        del config["attention"], config["feed_forward"]
        return config | {"width": self.width}


@keras.saving.register_keras_serializable(package="tests")
class ScaledFeedForward(FeedForward):
    """Hands all arguments on, and keeps one of its own under another name."""

    def __init__(self, *args, scale=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.factor = scale

    def call(self, inputs, training=None):
        return self.factor * super().call(inputs, training=training)

    def get_config(self):
        return super().get_config() | {"scale": self.factor}


@keras.saving.register_keras_serializable(package="tests")
class NamedFeedForward(FeedForward):
    """Has an attribute of its own, and no configuration."""

    def __init__(self, intermediate_dim, label="plain", **kwargs):
        super().__init__(intermediate_dim, **kwargs)
        self.label = label


@keras.saving.register_keras_serializable(package="tests")
class Labeled(TransformerEncoder):
    """A model."""

    def __init__(self, *args, label="plain", **kwargs):
        super().__init__(*args, **kwargs)
        self.label = label

    def get_config(self):
        return super().get_config() | {"label": self.label}


CASES = {
    "parts of its own": (lambda: SizedBlock(3, dropout=0.5), {"width": 3, "dropout": 0.5}),
    "all handed on": (
        lambda: ScaledFeedForward(7, "gelu", scale=2.0, use_bias=False),
        {"intermediate_dim": 7, "activation": "gelu", "scale": 2.0, "use_bias": False},
    ),
    "no configuration": (
        lambda: NamedFeedForward(7, dropout=0.5),
        {"intermediate_dim": 7, "dropout": 0.5},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layers_of_users_keep_their_configuration(case, tmp_path):
    make, expected = CASES[case]
    layer = make()
    config = layer.get_config()
    assert {name: config[name] for name in expected} == expected
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    loaded = assert_saved(model, X, tmp_path)
    assert loaded.layers[1].get_config() == config


def test_models_of_users_keep_their_configuration():
    sizes = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
    config = Labeled(11, **sizes, dropout=0.3, label="own").get_config()
    expected = sizes | {"vocabulary_size": 11, "dropout": 0.3, "label": "own"}
    assert {name: config[name] for name in expected} == expected
    assert Labeled.from_config(config).get_config() == config


def test_what_changes_after_construction_is_saved():
    layer = FeedForward(7, dropout=0.1)
    layer.dropout = 0.4
    block = TransformerEncoderBlock(MultiHeadAttention(2, 3), layer)
    block.attention.trainable = False
    config = block.get_config()
    assert config["feed_forward"]["config"]["dropout"] == 0.4
    assert config["attention"]["config"]["trainable"] is False
    copy = TransformerEncoderBlock.from_config(config)
    assert copy.attention.trainable is False
