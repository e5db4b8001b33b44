"""Layers with weights of their own are quantized and adapted as Keras' layers that hold the same.

The judge of each is a function of Keras' own layers, as many as there are separate adapters.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
import pytest
from keras.quantizers import AbsMaxQuantizer, Int4QuantizationConfig, Int8QuantizationConfig

from keras_attn import layers
from keras_attn.layers import enable_lora
from keras_attn.layers.attention.head_projection import HeadProjection
from keras_attn.layers.attention.synthesizer_scores import HeadScores
from keras_attn.layers.dense import Dense
from keras_attn.layers.embedding.token import BiasedTokenEmbedding
from tests.harness import (
    arrays_of,
    assert_close,
    assert_same,
    assert_saved,
    built,
    load_elsewhere,
    numbers,
    numpy,
)
from tests.layers.cases import CASES
from tests.refusals import refused

ROWS = numbers(3, 2, 5, 7)
IDS = np.array([[3, 0, 10, 2, 2], [0, 7, 3, 10, 1]], "int32")
SEGMENTS = np.array([[0, 0, 1, 2, 1], [1, 2, 2, 0, 0]], "int32")
IMAGES = numbers(4, 2, 4, 6, 3)
PATCHES = IMAGES.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 6, 12)
HIDDEN = numbers(5, 2, 3, 5, 7)
HEADS = {"query": (2, 3), "key": (2, 3), "value": (2, 5)}
PER_TOKEN = Int8QuantizationConfig(activation_quantizer=AbsMaxQuantizer(axis=-1))


@dataclasses.dataclass(frozen=True)
class Kind:
    """A layer, and Keras' layers in its place.

    Attributes:
        make: Makes the layer, given its dtype.
        call: Calls it, and makes an array of what comes out.
        judges: Keras' layers, built; their weights are set to parts of the layer's.
        judge: What they make of the same input.
        lora: Names of the adapters, a judge each.
        floats: Whether there is float8 too.
    """

    make: Callable
    call: Callable
    judges: Callable
    judge: Callable
    lora: str = "lora_kernel"
    floats: bool = True


def _dense(units, features, **arguments):
    layer = keras.layers.Dense(units, **arguments)
    layer.build((None, None, features))
    return layer


def _table(rows, size, kind=keras.layers.Embedding):
    layer = kind(rows, size)
    layer.build()
    return layer


def _concatenated_heads(heads):
    """(batch, heads, length, features) of each as (batch, length, all features)."""
    rows = [numpy(x).transpose(0, 2, 1, 3) for x in heads]
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in rows], -1)


def _scores():
    layer = keras.layers.EinsumDense("bhtu,hul->bhtl", (3, None, 11), bias_axes="hl")
    layer.build(HIDDEN.shape)
    return [layer]


KINDS = {
    "Dense": Kind(
        lambda **dtype: Dense(6, activation="tanh", **dtype),
        lambda layer: numpy(layer(ROWS)),
        lambda: [_dense(6, 7, activation="tanh")],
        lambda layer: numpy(layer(ROWS)),
    ),
    "HeadProjection": Kind(
        lambda **dtype: HeadProjection(HEADS, **dtype),
        lambda layer: _concatenated_heads(layer(ROWS)),
        lambda: [_dense(a * b, 7) for a, b in HEADS.values()],
        lambda *all_: np.concatenate([numpy(layer(ROWS)) for layer in all_], -1),
    ),
    "PatchEmbedding": Kind(
        lambda **dtype: layers.PatchEmbedding(2, 6, **dtype),
        lambda layer: numpy(layer(IMAGES)),
        lambda: [_dense(6, 12)],
        lambda layer: numpy(layer(PATCHES)),
    ),
    "HeadScores": Kind(
        lambda **dtype: HeadScores(3, 11, True, keras.initializers.GlorotUniform(1), **dtype),
        lambda layer: numpy(layer(HIDDEN, length=8)),
        _scores,
        lambda layer: numpy(layer(HIDDEN))[..., :8],
    ),
    "TokenEmbedding": Kind(
        lambda **dtype: layers.TokenEmbedding(11, 6, **dtype),
        lambda layer: numpy(layer(IDS)),
        lambda: [_table(11, 6)],
        lambda layer: numpy(layer(IDS)) * np.float32(6**0.5),
        "lora_embeddings",
        floats=False,
    ),
    "TokenEmbedding, reversed": Kind(
        lambda **dtype: BiasedTokenEmbedding(11, 7, **dtype),
        lambda layer: numpy(layer(ROWS, reverse=True)),
        lambda: [_table(11, 7, keras.layers.ReversibleEmbedding)],
        lambda layer: numpy(layer(ROWS, reverse=True)),
        "lora_embeddings",
        floats=False,
    ),
    "LearnedPositionEmbedding": Kind(
        lambda **dtype: layers.LearnedPositionEmbedding(5, **dtype),
        lambda layer: numpy(layer(ROWS)),
        lambda: [_table(5, 7)],
        lambda layer: ROWS + numpy(layer(np.arange(5))),
        "lora_embeddings",
        floats=False,
    ),
    "SegmentEmbedding": Kind(
        lambda **dtype: layers.SegmentEmbedding(3, **dtype),
        lambda layer: numpy(layer(ROWS, SEGMENTS)),
        lambda: [_table(3, 7)],
        lambda layer: ROWS + numpy(layer(SEGMENTS)),
        "lora_embeddings",
        floats=False,
    ),
}
MODES = {
    "int8": PER_TOKEN,
    "int8, weights alone": Int8QuantizationConfig(activation_quantizer=None),
    "int4": Int4QuantizationConfig(block_size=4),
    "int4 of channels": Int4QuantizationConfig(block_size=-1),
    "float8": keras.quantizers.Float8QuantizationConfig(),
}
FIRST = {case.layer.__name__: case for case in reversed(CASES)}
SUBTLE = ("HeadProjection", "HeadScores", "TokenEmbedding, reversed")


def cases(everywhere, also):
    """Every kind in some modes, and those with quantized calls of their own in further ones."""
    names = [(name, mode) for name in KINDS for mode in everywhere]
    names += [(name, mode) for name in SUBTLE for mode in also]
    return pytest.mark.parametrize(
        ("kind", "mode"),
        [pytest.param(KINDS[name], mode, id=f"{name}-{mode}") for name, mode in names],
    )


def pair(kind, **dtype):
    """The layer and its judges with the same weights."""
    layer, judges = kind.make(**dtype), kind.judges()
    kind.call(layer)
    ends = np.cumsum([judge.weights[0].shape[-1] for judge in judges])[:-1]
    parts = zip(*(np.split(numpy(w), ends, axis=-1) for w in layer.weights), strict=True)
    for judge, weights in zip(judges, parts, strict=True):
        judge.set_weights(weights[: len(judge.weights)])
    return layer, judges


def adapt(kind, layer, judges, rank=3):
    """Gives both the same adapters, with numbers in them."""
    for one in (layer, *judges):
        one.enable_lora(rank, lora_alpha=2 * rank)
    for number, (factors, judge) in enumerate(zip(layer._adapters(), judges, strict=True)):
        for name, factor in zip("ab", factors, strict=True):
            value = numbers(number, *factor.shape) / 3
            factor.assign(value)
            getattr(judge, f"{kind.lora}_{name}").assign(value)


def stored(layer):
    store = {}
    layer.save_own_variables(store)
    return {name: numpy(value) for name, value in store.items()}


@cases(["int8"], ["int4", "float8"])
@pytest.mark.filterwarnings(r"ignore:[\s\S]*use of `x.T`")  # of Keras' reversed table, on torch
def test_quantized_as_keras_quantizes(kind, mode):
    if mode == "float8" and not kind.floats:
        layer, _ = pair(kind)
        with pytest.raises(NotImplementedError, match="float8"):
            layer.quantize("float8")
        return
    layer, judges = pair(kind)
    exact = kind.call(layer)
    for one in (layer, *judges):
        one.quantize(config=MODES[mode])
    found = kind.call(layer)
    assert_close(found, kind.judge(*judges), rtol=1e-5, atol=1e-5)
    assert 1e-6 < np.abs(found - exact).max() < (0.05 if "int8" in mode else 1.5)
    whole = [
        sum(np.prod(w.shape) for one in kinds for w in one.weights if w.dtype == "int8")
        for kinds in ([layer], judges)
    ]
    assert whole[0] == whole[1]


@cases([None], ["int8", "int8, weights alone", "int4 of channels"])
def test_adapted_and_merged_as_keras_does(kind, mode):
    layer, judges = pair(kind)
    if mode is not None:
        for one in (layer, *judges):
            one.quantize(config=MODES[mode])
    adapt(kind, layer, judges)
    trained = {id(weight) for weight in layer.trainable_variables}
    assert trained >= {id(factor) for pair in layer._adapters() for factor in pair}
    assert not layer._kernel.trainable if kind.floats else not layer._embeddings.trainable
    found = kind.call(layer)
    if mode is None or kind is not KINDS["TokenEmbedding, reversed"]:  # where Keras forgets it
        assert_close(found, kind.judge(*judges), rtol=1e-4, atol=1e-4)
    # Merged at saving, and quantized again.
    store = stored(layer)
    if len(judges) == 1:
        for name, value in stored(judges[0]).items():
            assert_close(store[name], value, rtol=1e-5, atol=1e-5)
    merged, _ = pair(kind)
    if mode is not None:
        merged.quantize(config=MODES[mode])
    merged.load_own_variables(store)
    largest = {None: 1e-4, "int4 of channels": 3}.get(mode, 0.3)
    assert_close(kind.call(merged), found, rtol=0, atol=largest)
    # Loaded, an adapter changes nothing and can be trained further.
    before = [numpy(first) for first, _ in layer._adapters()]
    layer.load_own_variables(store)
    assert_close(kind.call(layer), kind.call(merged), rtol=1e-5, atol=1e-5)
    for (first, second), value in zip(layer._adapters(), before, strict=True):
        assert not numpy(second).any()
        assert_same(first, value)


@cases(["int8"], ["int4", "float8"])
def test_made_quantized_by_a_dtype(kind, mode):
    if mode == "float8" and not kind.floats:
        return
    layer, _ = pair(kind)
    layer.quantize(config=MODES[mode])
    made = kind.make(dtype="int4/4_from_float32" if mode == "int4" else f"{mode}_from_float32")
    kind.call(made)
    made.load_own_variables(stored(layer))
    assert_same(kind.call(made), kind.call(layer))


def test_a_reversed_table_counts_its_adapter_where_it_is_quantized():
    layer = layers.TokenEmbedding(11, 7, scale=False)
    layer.build()
    layer.quantize(config=MODES["int8, weights alone"])
    layer.enable_lora(2)
    layer.lora_embeddings_b.assign(numbers(1, 2, 7))
    expected = ROWS @ numpy(layer(np.arange(11))).T
    assert_close(layer(ROWS, reverse=True), expected, rtol=1e-5, atol=1e-5)


def test_roles_have_adapters_of_their_own():
    layer = HeadProjection(HEADS)
    before = dict(zip(HEADS, layer(ROWS), strict=True))
    layer.enable_lora(3, roles=("query", "value"))
    names = [weight.name for weight in layer.trainable_variables]
    assert names == ["bias", "query_lora_a", "query_lora_b", "value_lora_a", "value_lora_b"]
    assert [layer.adapters[role][1].shape for role in ("query", "value")] == [(3, 6), (3, 10)]
    layer.adapters["value"][1].assign(numbers(1, 3, 10))
    after = dict(zip(HEADS, layer(ROWS), strict=True))
    changed = {role for role in HEADS if np.abs(numpy(after[role] - before[role])).max() > 1e-5}
    assert changed == {"value"}
    a, b = map(numpy, layer.adapters["value"])
    moved = (ROWS @ a @ b).reshape(2, 5, 2, 5).transpose(0, 2, 1, 3)
    assert_close(after["value"], numpy(before["value"]) + moved, rtol=1e-4, atol=1e-5)
    # A single role, where query and value come from different sequences.
    (alone,) = layer(ROWS, roles=("value",))
    assert_close(alone, after["value"], rtol=1e-5, atol=1e-5)


def test_a_quantized_projection_gives_the_roles_asked_for():
    layer = HeadProjection(HEADS)
    layer.build(ROWS.shape)
    layer.quantize("int8")
    query, _, value = layer(ROWS)
    found = layer(ROWS, roles=("value", "query"))
    assert_same(found, (value, query))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rank": 0}, r"`rank` must be a positive integer. Received: rank=0"),
        ({"rank": 2, "roles": ("gate",)}, r"must be one of 'query', 'key', 'value'"),
    ],
)
def test_mistakes_with_roles(given, message):
    layer = HeadProjection(HEADS)
    layer.build(ROWS.shape)
    refused(message, layer.enable_lora, **given)
    attention = layers.MultiHeadAttention(2, 3)
    refused("gate", enable_lora, attention, 2, roles=("gate",))
    refused("must hold attention that is built", enable_lora, attention, 2)
    refused("`roles` must name at least one of query", enable_lora, layer, 2, roles=())


def test_one_role_by_its_name():
    layer = HeadProjection(HEADS)
    layer.build(ROWS.shape)
    (projection,) = enable_lora(layer, 2, roles="query")
    assert set(projection.adapters) == {"query"}


def block():
    parts = layers.MultiHeadAttention(2, 3), layers.FeedForward(6)
    return layers.TransformerEncoderBlock(*parts, dropout=0.0)


def model_of(layer):
    inputs = keras.Input((None, 7), name="rows")
    return keras.Model(inputs, layer(inputs))


@pytest.mark.parametrize("mode", ["int4", "float8"])
def test_what_is_inside_of_a_layer_stays_quantized_when_it_is_loaded(mode, tmp_path):
    model = model_of(block())
    with pytest.warns(UserWarning, match="does not have a `quantize`"):
        model.quantize(mode)
    loaded = assert_saved(model, ROWS, tmp_path)
    assert {w.path: w.dtype for w in loaded.weights} == {w.path: w.dtype for w in model.weights}


def test_a_map_of_policies_quantizes_what_it_names():
    policies = keras.dtype_policies.DTypePolicyMap("float32")
    policies["mha/query"] = "int8_from_float32"
    layer = layers.MultiHeadAttention(2, 3, name="mha", dtype=policies)
    layer(ROWS, ROWS)
    int8 = [weight.path for weight in layer.weights if weight.dtype == "int8"]
    assert int8 == ["mha/query/kernel"]
    config = layer.get_config()
    assert layers.MultiHeadAttention.from_config(config).get_config() == config


def test_a_model_that_is_refused_is_left_as_it_was():
    inputs = keras.Input((None, 7))
    first, second = block(), block()
    model = keras.Model(inputs, second(first(inputs)))
    enable_lora(second, 2)
    before = [weight.path for weight in model.trainable_variables]
    refused("A layer has LoRA only once", enable_lora, model, 2)
    assert [weight.path for weight in model.trainable_variables] == before


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_nothing_but_adapters_is_trained(quantized):
    model = model_of(block())
    if quantized:
        model.quantize("int8")
    (projection,) = enable_lora(model, 2, roles=("query", "value"))
    before = {weight.path: numpy(weight) for weight in model.weights}
    model.compile("sgd", "mse")
    model.fit(ROWS, numbers(6, *ROWS.shape), epochs=2, verbose=0)
    changed = {w.path for w in model.weights if np.any(numpy(w) != before[w.path])}
    assert changed == {w.path for pair in projection.adapters.values() for w in pair}
    assert len(changed) == 4


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_keras_users_loop_over_all_layers():
    model = model_of(block())
    exact = numpy(model(ROWS))
    for layer in model._flatten_layers():
        if hasattr(layer, "enable_lora"):
            layer.enable_lora(2)
    assert_close(model(ROWS), exact, rtol=1e-6, atol=1e-6)
    adapted = {w.path.rpartition("/")[2] for w in model.trainable_variables if "lora" in w.name}
    names = ("query_lora", "key_lora", "value_lora", "lora_kernel")
    assert adapted == {f"{name}_{factor}" for name in names for factor in "ab"}
    assert not any(weight.name == "kernel" for weight in model.trainable_variables)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.slow
def test_adapted_and_quantized_it_loads_in_a_fresh_process(tmp_path):
    model = model_of(block())
    model.quantize("int8")
    enable_lora(model, 2)
    model.compile("sgd", "mse")
    model.fit(ROWS, numbers(6, *ROWS.shape), verbose=0)
    model.save(tmp_path / "model.keras")
    outputs = numpy(keras.saving.load_model(tmp_path / "model.keras")(ROWS))
    assert_close(outputs, model(ROWS), atol=0.1)
    np.savez(tmp_path / "model.inputs.npz", rows=ROWS)
    assert load_elsewhere(tmp_path, "keras_attn.layers") == {}
    assert_same(arrays_of(tmp_path / "model.outputs.npz"), {"arr_0": outputs})


@pytest.mark.parametrize("case", FIRST.values(), ids=FIRST)
def test_all_that_a_layer_is_made_of_can_be_quantized(case):
    layer = built(case)
    parts = list(layer._flatten_layers())
    for part in parts:
        assert part.built, f"{part.name}: Keras' `Model.quantize` stops at a layer that is not"
    shown = {type(kind.make()) for kind in KINDS.values()}
    held = {id(w) for part in parts if type(part) in shown for w in part.weights}
    left = [
        weight.path
        for weight in layer.weights
        if weight.name in ("kernel", "embeddings") and id(weight) not in held
    ]
    # Small, without a counterpart of Keras that is quantized, or within Keras' own layers.
    exempt = ("relative_position", "transformer_xl", "conv")
    assert not [path for path in left if not any(part in path for part in exempt)]
