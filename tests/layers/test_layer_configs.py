"""Layers that others are built from: what is refused, and what a configuration may hold."""

import inspect

import keras
import pytest

from keras_attn import layers
from keras_attn.layers import FeedForward, GlobalLocalAttention, MultiHeadAttention
from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.recurrent.attentive_decoder import AttentiveDecoder
from keras_attn.layers.recurrent.input_feeding_decoder import InputFeedingDecoder
from keras_attn.validation import UserError
from tests.harness import assert_saved, numbers
from tests.refusals import refused

X = numbers(1, 2, 5, 6)
SIZES = {"num_heads": 2, "key_dim": 3}


def attention():
    return MultiHeadAttention(2, 3)


def feed_forward():
    return FeedForward(11)


def global_local():
    return GlobalLocalAttention(2, 3, radius=1)


def recurrent_memory():
    return layers.RecurrentMemoryAttention(2, 3, memory_length=3)


def bias():
    return layers.RelativePositionBias(2)


BLOCK = {"attention": attention, "feed_forward": feed_forward}
NORM = {"norm": layers.RMSNormalization}
ATTENTION_NORM = {"attention_norm": layers.RMSNormalization}
RECURRENT = {"cell": "gru", "units": 4, "num_layers": 1}

# Every argument that a layer is built from, with the others that the constructor needs.
TEMPLATES = {
    layers.TransformerEncoderBlock: (BLOCK | NORM | ATTENTION_NORM, {}),
    layers.TransformerDecoderBlock: (
        {"self_attention": attention, "feed_forward": feed_forward, "cross_attention": attention}
        | NORM,
        {},
    ),
    layers.GlobalLocalEncoderBlock: (
        {"attention": global_local, "feed_forward": feed_forward} | ATTENTION_NORM,
        {},
    ),
    layers.ReversibleBlock: (BLOCK, {}),
    layers.SegmentRecurrence: ({"attention": recurrent_memory}, {"segment_length": 3}),
    layers.ConvolvedAttention: ({"attention": attention}, {}),
    layers.MultiHeadAttention: ({"relative_positions": bias}, SIZES),
    layers.LocalAttention: ({"relative_positions": bias}, SIZES | {"sliding_window": 2}),
    layers.RecurrentMemoryAttention: ({"relative_positions": bias}, SIZES | {"memory_length": 3}),
    AttentiveDecoder: ({"attention": lambda: AdditiveAttention(3)}, RECURRENT),
    InputFeedingDecoder: ({"attention": lambda: AdditiveAttention(3)}, RECURRENT),
}
# Taken as they are; a parent's; none of those that fit has weights.
OTHERS = {
    layers.ReversibleStack: "blocks",
    layers.CompressiveMemoryAttention: "relative_positions",
    layers.LinearAttention: "relative_positions",
    layers.PerformerAttention: "relative_positions",
}


def built(template):
    layer = template()
    positions = isinstance(layer, layers.RelativePositionBias)
    one = positions or isinstance(layer, FeedForward | layers.RMSNormalization)
    if positions:
        layer.build()
    elif one:
        layer(X)
    elif isinstance(layer, GlobalLocalAttention):
        layer(X, X, global_query=X[:, :2])
    else:
        layer(X, X)
    return layer


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, (parts, _) in TEMPLATES.items() for name in parts],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_layer_with_weights_is_refused(kind, name):
    parts, others = TEMPLATES[kind]
    given = {part: template() for part, template in parts.items()}
    kind(**given, **others)
    given[name] = built(parts[name])
    count = len(given[name].weights)
    assert count
    message = rf"\A`{name}` must be an unbuilt layer: [^\n]*Received: {name}='[a-z_0-9]+', "
    refused(rf"{message}weights={count}\.\Z", kind, **given, **others)


def test_every_argument_that_is_a_layer_is_in_the_table():
    public = {getattr(layers, name) for name in layers.__all__}
    for kind in {kind for kind in public if inspect.isclass(kind)} | set(TEMPLATES):
        parameters = inspect.signature(kind.__init__).parameters.values()
        taken = {one.name for one in parameters if "Layer" in str(one.annotation)}
        taken |= {one.name for one in parameters if one.name == "relative_positions"}
        assert taken - {OTHERS.get(kind)} == set(TEMPLATES.get(kind, [{}])[0]), kind


def sequential():
    return keras.Sequential([keras.layers.Dense(11, "relu"), keras.layers.Dense(6)])


def functional():
    inputs = keras.Input((None, 6))
    return keras.Model(inputs, keras.layers.Dense(6)(inputs))


def test_a_functional_model_is_refused():
    with pytest.raises(UserError, match="`feed_forward` must be an unbuilt layer"):
        layers.TransformerEncoderBlock(attention(), functional())


def test_what_is_built_without_weights_is_taken():
    dropout = keras.layers.Dropout(0.5)
    assert dropout.built
    layers.TransformerEncoderBlock(attention(), dropout)


def test_a_configuration_may_hold_what_keras_builds_by_itself(tmp_path):
    block = layers.TransformerEncoderBlock(attention(), sequential())
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, block(inputs))
    assert_saved(model, X, tmp_path)
    config = block.get_config() | {
        "feed_forward": keras.saving.serialize_keras_object(functional())
    }
    copy = layers.TransformerEncoderBlock.from_config(config)
    assert copy(X).shape == (2, 5, 6)


def test_after_a_configuration_was_read_templates_are_refused_again():
    block = layers.TransformerEncoderBlock(attention(), sequential())
    layers.TransformerEncoderBlock.from_config(block.get_config())
    with pytest.raises(UserError, match="`feed_forward` must be an unbuilt layer"):
        layers.TransformerEncoderBlock(attention(), built(feed_forward))
