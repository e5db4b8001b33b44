"""What hidden positions hold reaches neither real rows nor gradients, NaN and infinity included."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import layers
from keras_attn.layers.convolutional.stacks import ConvolutionalDecoder, ConvolutionalEncoder
from keras_attn.layers.recurrent.recurrent_stack import RecurrentStack
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.attention.test_contract import having
from tests.layers.differentiation import value_and_gradients
from tests.layers.judges import spread_weights

X = numbers(1, 2, 11, 6)
REAL = np.arange(11)[None, :] < np.array([[4], [9]])
SOURCE = numbers(2, 2, 7, 6)
SOURCE_REAL = np.arange(7)[None, :] < np.array([[7], [3]])


def seen(output, real):
    """A number of the real rows of a sequence alone."""
    factors = np.cos(np.arange(np.prod(output.shape[1:]))).reshape(output.shape[1:])
    shown = ops.where(ops.expand_dims(real, -1), output, 0.0)
    return ops.sum(shown * ops.convert_to_tensor(factors, "float32"))


def assert_hidden_counts_for_nothing(layer, function, *sequences):
    """Holds the number that a function gives, and its gradients, against what is hidden.

    Args:
        layer: A layer, built here if it is none of several; its weights are differentiated by too.
        function: Takes the sequences, returns a number of what is real.
        *sequences: Pairs of an array (batch, length, features) and which positions are real.
    """
    if not (layer.built or isinstance(layer, keras.Sequential)):
        layer.build(*(x.shape for x, _ in sequences))
    spread_weights(layer)
    weights = list(layer.trainable_variables)

    def of_tensors(tensors):
        values = zip(weights, tensors[len(sequences) :], strict=True)
        with keras.StatelessScope(state_mapping=list(values)):
            return function(*tensors[: len(sequences)])

    run, results = value_and_gradients(of_tensors), []
    for filler in (0.7, np.nan, np.inf, 3e38):
        filled = [np.where(real[..., None], x, filler).astype("float32") for x, real in sequences]
        value, gradients = run([*filled, *(numpy(weight.value) for weight in weights)])
        results.append([numpy(value), *map(numpy, gradients)])
    names = [f"input {i}" for i in range(len(sequences))] + [weight.path for weight in weights]
    for name, expected, *found in zip(["value", *names], *results, strict=True):
        assert np.isfinite(expected).all(), name
        for other in found:
            assert_close(other, expected, rtol=1e-5, atol=1e-6, err_msg=name)
    for gradient, (_, real) in zip(results[0][1:], sequences, strict=False):
        assert not gradient[~real].any()
        assert gradient[real].any()


@having(every=4)
def test_in_a_mechanism(mechanism):
    layer = mechanism.make()

    def function(x):
        outputs = [
            layer(x, x, query_mask=REAL, value_mask=REAL),
            layer(x, x, value_mask=REAL),
            layer(x, x, key_mask=REAL),
            layer(x, x, attention_mask=REAL[:, None]),
            layer(x, x, attention_mask=REAL[:, None, None]),
        ]
        if mechanism.causal:
            masks = {"query_mask": REAL, "value_mask": REAL}
            outputs.append(layer(x, x, use_causal_mask=True, **masks))
        if mechanism.pairs:
            pairs = np.tril(np.ones((11, 11), bool)) & REAL[:, None]
            outputs.append(layer(x, x, attention_mask=pairs))
        return sum(seen(output, REAL) for output in outputs)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL))


@having()
def test_a_query_whose_key_is_hidden_is_still_a_query(mechanism):
    layer = mechanism.make()
    layer.build(X.shape)
    spread_weights(layer)
    x, copy = ops.convert_to_tensor(X), ops.convert_to_tensor(X.copy())
    for masks in ({"value_mask": REAL}, {"attention_mask": REAL[:, None]}):
        as_one, as_two = layer(x, x, **masks), layer(x, copy, **masks)
        assert_close(as_one, as_two, rtol=1e-5, atol=1e-6)


def test_queries_of_hidden_keys_are_those_of_keras():
    """A mask that lets no position see itself hides the last one from all, which still looks."""
    judge, layer = keras.layers.MultiHeadAttention(2, 3), layers.MultiHeadAttention(2, 3)
    x = ops.convert_to_tensor(X)
    judge.build(X.shape, X.shape)
    layer.build(X.shape, X.shape)
    spread_weights(judge)
    query, query_bias, key, key_bias, value, value_bias, output, bias = map(numpy, judge.weights)
    flat = [
        query,
        query_bias,
        np.concatenate([key, value], 1),
        np.concatenate([key_bias, value_bias]),
    ]
    for weight, found in zip(layer.weights, [*flat, output, bias], strict=True):
        weight.assign(found.reshape(weight.shape))
    earlier = np.tril(np.ones((11, 11), bool), -1)
    for masks in ({"value_mask": REAL}, {"attention_mask": np.maximum(earlier, np.eye(11)[0])}):
        assert_close(layer(x, x, **masks), judge(x, x, **masks), rtol=1e-4, atol=1e-5)


@having("crosses")
def test_in_attention_to_another_sequence(mechanism):
    layer = mechanism.make()

    def function(x, source):
        output = layer(x, source, query_mask=REAL, value_mask=SOURCE_REAL)
        kept = layer.project_source(source, value_mask=ops.convert_to_tensor(SOURCE_REAL))
        steps = layer.attend_source(ops.where(REAL[..., None], x, 0.0), kept)
        return seen(output, REAL) + seen(steps, REAL)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL), (SOURCE, SOURCE_REAL))


@having("steps")
def test_in_a_prompt(mechanism):
    layer = mechanism.make()
    layer.build(X.shape)
    spread_weights(layer)
    results = []
    for filler in (0.7, np.nan, np.inf):
        x = ops.convert_to_tensor(np.where(REAL[..., None], X, filler).astype("float32"))
        real = ops.convert_to_tensor(REAL)
        output, cache = layer.attend_prompt(x, layer.initial_cache(2, 13), real)
        step, _ = layer.attend_step(ops.convert_to_tensor(SOURCE[:, :1]), cache, 0)
        results.append((numpy(output)[REAL], numpy(step)))
    for found in results[1:]:
        assert_same(found[0], results[0][0])
        assert_same(found[1], results[0][1])
    assert np.isfinite(results[0][1]).all()


def test_over_several_axes():
    layer = layers.MultiHeadAttention(2, 3, attention_axes=(2,))
    images, real = numbers(3, 2, 3, 5, 6), np.arange(30).reshape(2, 3, 5) % 4 > 0
    layer.build(images.shape, images.shape)

    def function(x):
        return seen(layer(x, x, query_mask=real, value_mask=real), real)

    assert_hidden_counts_for_nothing(layer, function, (images, real))


@pytest.mark.parametrize(
    "layer",
    [layers.RecurrentMemoryAttention(2, 3, 4), layers.CompressiveMemoryAttention(2, 3, 4, 2)],
    ids=["recurrent", "compressive"],
)
def test_behind_a_memory(layer):
    """Neither does what a memory holds where it is not real, nor what is hidden as it enters."""
    layer.build(X.shape)
    earlier, earlier_real = SOURCE, SOURCE_REAL

    def function(x, earlier):
        memory = layer.initial_memory(2, 6)
        memory = memory._replace(states=ops.full(memory.states.shape, float("nan")))
        masks = {"query_mask": earlier_real, "value_mask": earlier_real}
        first, memory = layer(earlier, earlier, memory=memory, **masks)
        second, _ = layer(x, x, memory=memory, query_mask=REAL, value_mask=REAL)
        return seen(first, earlier_real) + seen(second, REAL)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL), (earlier, earlier_real))


def test_global_positions():
    layer = layers.GlobalLocalAttention(2, 3, radius=2, max_distance=1)
    few, few_real = SOURCE[:, :3], SOURCE_REAL[:, 2:5]
    layer.build(X.shape, global_query_shape=few.shape)

    def function(x, few):
        masks = {"value_mask": REAL, "query_mask": REAL, "global_query_mask": few_real}
        output, of_few = layer(x, x, global_query=few, **masks)
        return seen(output, REAL) + seen(of_few, few_real)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL), (few, few_real))


@pytest.mark.parametrize("norm_first", [False, True])
def test_in_an_encoder_block(norm_first):
    parts = layers.MultiHeadAttention(2, 3), layers.FeedForward(5)
    layer = layers.TransformerEncoderBlock(*parts, norm_first=norm_first)

    def function(x):
        return seen(layer(x, padding_mask=REAL), REAL)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL))


@pytest.mark.parametrize("norm_first", [False, True])
def test_in_a_decoder_block(norm_first):
    attention = layers.MultiHeadAttention(2, 3)
    parts = attention, layers.FeedForward(5), attention
    layer = layers.TransformerDecoderBlock(*parts, norm_first=norm_first)

    def function(x, source):
        masks = {"padding_mask": REAL, "source_padding_mask": SOURCE_REAL}
        return seen(layer(x, source, **masks), REAL)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL), (SOURCE, SOURCE_REAL))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("is_stack", [False, True])
def test_in_reversible_blocks(is_stack, training):
    layer = layers.ReversibleBlock(layers.LSHAttention(2, 3, 4, seed=1), layers.FeedForward(5))
    layer = layers.ReversibleStack([layer]) if is_stack else layer
    layer.build(X.shape, X.shape)

    def function(x):
        return sum(seen(y, REAL) for y in layer(x, x, padding_mask=REAL, training=training))

    assert_hidden_counts_for_nothing(layer, function, (X, REAL))


def test_in_a_global_local_block():
    attention = layers.GlobalLocalAttention(2, 3, radius=2, max_distance=1)
    layer = layers.GlobalLocalEncoderBlock(attention, layers.FeedForward(5))
    few, few_real = SOURCE[:, :3], SOURCE_REAL[:, 2:5]

    def function(x, few):
        output, of_few = layer(x, few, padding_mask=REAL, global_padding_mask=few_real)
        return seen(output, REAL) + seen(of_few, few_real)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL), (few, few_real))


@pytest.mark.parametrize(
    "stack",
    [
        RecurrentStack("lstm", 4, 2, bidirectional_layers=1),
        RecurrentStack("gru", 6, 2, residual_from=0),
        RecurrentStack("lstm", 4, 1, intra_attention=3),
    ],
    ids=["lstm", "gru", "intra-attention"],
)
def test_in_recurrent_layers(stack):

    def function(x):
        output, summaries = stack(x, mask=ops.convert_to_tensor(REAL))
        return seen(output, REAL) + sum(ops.sum(y) for y in keras.tree.flatten(summaries))

    assert_hidden_counts_for_nothing(stack, function, (X, REAL))


def test_in_convolutions():
    encoder, decoder = ConvolutionalEncoder(2, 5, 3), ConvolutionalDecoder(2, 5, 3)
    encoder.build(SOURCE.shape)
    decoder.build(X.shape, SOURCE.shape, SOURCE.shape)

    def function(source):
        real = ops.convert_to_tensor(SOURCE_REAL)
        key, value = encoder(source, mask=real)
        output = decoder(ops.convert_to_tensor(X), key, value, source_mask=real)
        return seen(key, SOURCE_REAL) + seen(output, REAL)

    both = keras.Sequential([encoder, decoder])
    assert_hidden_counts_for_nothing(both, function, (SOURCE, SOURCE_REAL))


@pytest.mark.parametrize("pooling", ["mean", "max", "mean_max", "first"])
def test_in_pooling(pooling):
    layer = layers.SequencePooling(pooling)

    def function(x):
        return ops.sum(layer(x, mask=REAL) ** 2)

    assert_hidden_counts_for_nothing(layer, function, (X, REAL))


def test_in_subsampling():
    layer = layers.ConvolutionalSubsampling(5)

    def function(x):
        return seen(layer(x, mask=ops.convert_to_tensor(REAL)), REAL[:, ::4])

    assert_hidden_counts_for_nothing(layer, function, (X, REAL))


def test_self_attention_stays_a_single_product(monkeypatch):
    """One tensor as query and value goes through one fused projection, masked or not."""
    layer = layers.MultiHeadAttention(2, 3)
    layer.build(X.shape)
    projection, calls = layer.projections[0], []
    call = projection.call

    def counted(inputs, **options):
        calls.append(options["roles"])
        return call(inputs, **options)

    monkeypatch.setattr(projection, "call", counted)
    x = ops.convert_to_tensor(X)
    layer(x, x, query_mask=REAL, value_mask=REAL)
    assert calls == [("query", "key", "value")]
