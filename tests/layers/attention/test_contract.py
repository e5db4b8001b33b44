"""What all attention mechanisms have in common: masks, order, steps, and their place in blocks."""

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.attention.registry import ATTENTION, named_attention
from keras_attn.validation import UserError
from tests.backends import thinned
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.differentiation import value_and_gradients
from tests.layers.judges import assert_steps, called, of_own_values, spread_weights
from tests.layers.mechanisms import MECHANISMS
from tests.refusals import refused

ON_JAX = keras.backend.backend() == "jax"

X = numbers(1, 2, 11, 6)
SOURCE = numbers(2, 2, 7, 6)
LONG = numbers(3, 1, 149, 6)  # more than any block, and a multiple of none
# Mechanisms whose positions are counted from the beginning of a row, padding included.
COUNTING = (
    *("segmented, recurrent memory", "segmented, compressive memory", "global and local"),
    *("dense synthesizer", "factorized dense synthesizer", "random synthesizer"),
    *("factorized random synthesizer", "mixture", "sparse, fixed", "Linformer", "Sinkhorn"),
    "Performer, rotary",
)
LENGTHS = np.array([4, 11])  # of the rows of X
REAL = np.arange(11)[None, :] < LENGTHS[:, None]


def having(*parts, every=1):
    """The mechanisms with these parts.

    By default each `every`th one is tested, and of each layer the first.
    """
    chosen, layers_seen = [], set()
    for name, mechanism in MECHANISMS.items():
        if all(getattr(mechanism, part) for part in parts):
            layer = type(mechanism.make())
            marks = [pytest.mark.slow] if layer in layers_seen or len(chosen) % every else []
            layers_seen.add(layer)
            chosen.append(pytest.param(mechanism, id=name, marks=marks))
    return pytest.mark.parametrize("mechanism", chosen)


def lacking(part):
    names = [name for name, m in MECHANISMS.items() if not getattr(m, part)]
    return pytest.mark.parametrize("mechanism", [MECHANISMS[name] for name in names], ids=names)


def built(mechanism, **arguments):
    layer = mechanism.make(**arguments)
    layer.build(X.shape, X.shape)
    return one_program(spread_weights(layer))


def one_program(layer):
    """On JAX each operation alone would be compiled, which takes far longer than a call at once."""
    if not ON_JAX:
        return layer
    import jax

    flags = ("use_causal_mask", "training", "return_attention_scores")
    layer.call = jax.jit(layer.call, static_argnames=flags)
    for name in ("attend_step", "attend_prompt"):
        if hasattr(layer, name):
            setattr(layer, name, jax.jit(getattr(layer, name)))
    return layer


def of_zero_context(layer):
    """What the layer makes of a context of 0."""
    layer = getattr(layer, "attention", layer)  # where it is around another
    if not hasattr(layer, "output_projection"):
        return np.zeros(6)
    width = layer.output_projection.kernel.shape[0]
    return numpy(layer.output_projection(np.zeros((1, 1, width), "float32")))[0, 0]


def mask_arguments(kind):
    """The same padding of the keys, said in different ways."""
    return {
        "value_mask": {"value_mask": REAL},
        "key_mask": {"key_mask": REAL},
        "attention_mask": {"attention_mask": REAL[:, None]},
        "attention_mask of heads": {"attention_mask": REAL[:, None, None]},
    }[kind]


@having()
def test_padding_changes_nothing(mechanism):
    layer = built(mechanism)
    expected = numpy(layer(X[:1, :4], X[:1, :4]))
    for kind in ("value_mask", "key_mask", "attention_mask", "attention_mask of heads"):
        found = numpy(layer(X, X, **mask_arguments(kind)))
        assert_close(found[:1, :4], expected, atol=5e-6, err_msg=kind)
        assert np.isfinite(found).all(), kind


@having()
def test_padding_before_a_sequence(mechanism, request):
    """Changes nothing either, unless positions are counted from the beginning of the row."""
    layer = built(mechanism)
    expected = numpy(layer(X[:1, :5], X[:1, :5]))
    padded = np.concatenate([9 * X[1:, :3], X[:1, :5], X[1:, :2]], axis=1)
    real = np.array([[False] * 3 + [True] * 5 + [False] * 2])
    found = numpy(layer(padded, padded, value_mask=real))[:, 3:8]
    name = request.node.callspec.id
    assert (np.abs(found - expected).max() > 1e-3) == (name in COUNTING)


@having()
def test_a_mask_that_keras_propagates_counts(mechanism):
    layer = built(mechanism)
    ids = np.where(REAL, 3, 0)
    embedded = keras.layers.Embedding(5, 6, mask_zero=True)(ids)
    expected = numpy(layer(numpy(embedded), numpy(embedded), query_mask=REAL, value_mask=REAL))
    assert_close(layer(embedded, embedded), expected, atol=5e-6)


@having()
@pytest.mark.parametrize(
    ("dtype", "training"),
    [
        ("float32", False),
        pytest.param("float16", True, marks=[pytest.mark.slow] * ON_JAX),
        pytest.param("float32", True, marks=pytest.mark.slow),
        pytest.param("float16", False, marks=pytest.mark.slow),
        pytest.param("bfloat16", False, marks=pytest.mark.slow),
        pytest.param("bfloat16", True, marks=pytest.mark.slow),
    ],
)
def test_nothing_to_attend_to_gives_a_context_of_zero(mechanism, dtype, training):
    layer = built(mechanism, dtype=dtype)
    nothing = np.array([[True], [False]]) & np.ones((2, 11), bool)
    for masks in ({"value_mask": nothing}, {"query_mask": nothing}):
        output = numpy(layer(X, X, training=training, **masks)).astype("float32")
        expected = of_zero_context(layer).astype("float32")
        assert_close(output[1], np.tile(expected, (11, 1)), atol=1e-6)
        assert np.isfinite(output).all()


@having("crosses")
def test_another_sequence(mechanism):
    layer = called(mechanism.make(), X, SOURCE)
    mask = np.arange(7)[None, :] < np.array([[3], [7]])
    found = numpy(layer(X, SOURCE, value_mask=mask))
    assert found.shape == X.shape
    assert_close(found[:1], layer(X[:1], SOURCE[:1, :3]), atol=5e-6)


@having()
@pytest.mark.parametrize("dtype", thinned(["bfloat16", "float16"], on_tensorflow=1))
def test_half_precision(mechanism, dtype):
    """Near float32, padding changes nothing, and large inputs pass what float16 can hold."""
    layer = built(mechanism)
    half = built(mechanism, dtype=f"mixed_{dtype}")
    half.set_weights(layer.get_weights())
    tolerance = 0.02 if dtype == "float16" else 0.16
    found = numpy(half(X, X, value_mask=REAL)).astype("float32")
    assert_close(found, layer(X, X, value_mask=REAL), atol=tolerance)
    assert_close(found[:1, :4], numpy(half(X[:1, :4], X[:1, :4])).astype("float32"), atol=tolerance)
    assert np.isfinite(numpy(half(300 * X, 300 * X, value_mask=REAL)).astype("float32")).all()


@having()
def test_a_sequence_alone(mechanism):
    """A batch of one gives what its row gives among others."""
    layer = built(mechanism)
    expected = numpy(layer(X, X, query_mask=REAL, value_mask=REAL))
    for row in range(2):
        x, real = X[row : row + 1], REAL[row : row + 1]
        found = numpy(layer(x, x, query_mask=real, value_mask=real))
        assert_close(found[0], expected[row], atol=5e-6)


@having("averages")
def test_a_single_position_reads_itself(mechanism):
    layer = built(mechanism)
    for x in (X[:, :1], X[:1, 4:5]):
        expected = of_own_values(layer, x)
        assert_close(layer(x, x), expected, atol=5e-6)
        if mechanism.causal:
            assert_close(layer(x, x, use_causal_mask=True), expected, atol=5e-6)


@having()
@pytest.mark.parametrize("length", [2, 131])
def test_lengths_that_fit_no_block(mechanism, length):
    layer = built(mechanism)
    longest = min(LONG.shape[1], getattr(layer, "max_length", LONG.shape[1]))
    length = min(length, longest - 2)
    whole, part = LONG[:, :longest], LONG[:, :length]
    real = np.arange(longest)[None, :] < length
    found = numpy(layer(whole, whole, value_mask=real))[:, :length]
    assert_close(found, layer(part, part), atol=1e-5)
    if mechanism.causal:
        found = numpy(layer(whole, whole, use_causal_mask=True))[:, :length]
        assert_close(found, layer(part, part, use_causal_mask=True), atol=1e-5)


@having()
def test_nothing_hidden_has_a_gradient(mechanism):
    """Padding has none, and what follows has none: exactly."""
    layer = built(mechanism)

    def of_the_seen(tensors):
        padded = layer(tensors[0], tensors[0], query_mask=REAL, value_mask=REAL)
        total = keras.ops.sum(
            keras.ops.where(REAL[..., None], padded, 0.0) * keras.ops.convert_to_tensor(X)
        )
        if mechanism.causal:
            causal = layer(tensors[1], tensors[1], use_causal_mask=True)
            total += keras.ops.sum((causal * keras.ops.convert_to_tensor(X))[:, :5])
        return total

    of_padded, of_causal = map(numpy, value_and_gradients(of_the_seen)([X, X])[1])
    assert not of_padded[~REAL].any()
    assert of_padded[REAL].any(axis=-1).all()
    assert not of_causal[:, 5:].any()
    assert of_causal[:, :5].any(axis=-1).all() == mechanism.causal


@having("causal")
def test_what_follows_does_not_count(mechanism):
    layer = built(mechanism)
    whole = numpy(layer(X, X, use_causal_mask=True))
    for length in (1, 4, 10):
        part = numpy(layer(X[:, :length], X[:, :length], use_causal_mask=True))
        assert_close(whole[:, :length], part, atol=5e-6)
    changed = np.concatenate([X[:, :5], 3 * X[:, 5:]], axis=1)
    found = numpy(layer(changed, changed, use_causal_mask=True))
    if isinstance(layer, layers.LSHAttention) and ON_JAX:
        # Sorting by hashes changes the order of sums there.
        assert_close(found[:, :5], whole[:, :5], rtol=0, atol=1e-6)
    else:
        assert_same(found[:, :5], whole[:, :5])
    assert (np.abs(found[:, 5:] - whole[:, 5:]).max(-1) > 1e-4).all()


@having("causal", "crosses")
@pytest.mark.parametrize("queries", [1, 4])
def test_the_last_query_stands_at_the_last_key(mechanism, queries):
    layer = called(mechanism.make(), X, X + 0)
    whole = numpy(layer(X, X, use_causal_mask=True))
    assert_close(layer(X[:, -queries:], X, use_causal_mask=True), whole[:, -queries:], atol=5e-6)


@having("pairs")
def test_a_mask_between_pairs(mechanism):
    layer = built(mechanism)
    pairs = np.tril(np.ones((11, 11), bool))[None].repeat(2, axis=0)
    assert_close(layer(X, X, attention_mask=pairs), layer(X, X, use_causal_mask=True), atol=5e-6)


@lacking("pairs")
def test_a_mask_between_pairs_is_refused(mechanism):
    with pytest.raises(UserError, match=r"attention_mask.*Received: shape=\(2, (1, )?11, 11\)"):
        mechanism.make()(X, X, attention_mask=np.ones((2, 11, 11), bool))


@having("scores")
def test_probabilities(mechanism):
    layer = built(mechanism)
    output, scores = layer(X, X, value_mask=REAL, return_attention_scores=True)
    scores = numpy(scores)
    assert_close(scores.sum(-1), 1, atol=1e-5)
    assert scores.shape[0] == 2
    assert scores.shape[-2:] == (11, 11)
    assert not scores[0, ..., 4:].any()
    assert_close(output, layer(X, X, value_mask=REAL), atol=5e-6)


@lacking("scores")
@pytest.mark.parametrize("symbolic", [False, True])
def test_probabilities_are_refused(mechanism, symbolic):
    x = keras.Input((None, 6)) if symbolic else X
    refused("scores", mechanism.make(), x, x, return_attention_scores=True)


@having("steps")
def test_steps_equal_the_whole(mechanism):
    layer = built(mechanism)
    expected = numpy(layer(X, X, use_causal_mask=True))
    assert_steps(layer.attend_step, layer.initial_cache(2, 13), X, expected)


# Caches of a fixed length, and caches that grow.
ROOMS = [5, None] if keras.backend.backend() == "tensorflow" else [5]


@having("steps")
@pytest.mark.parametrize("max_length", ROOMS)
def test_a_prompt_equals_its_steps(mechanism, max_length):
    """Prompts of seven positions and of two, the second one's padding full of large numbers."""
    layer = built(mechanism)
    real = np.arange(7) < np.array([[7], [2]])
    prompt = np.where(real[..., None], X[:, :7], 100.0).astype("float32")
    output, cache = layer.attend_prompt(prompt, layer.initial_cache(2, max_length), real)
    for row, length in enumerate((7, 2)):
        one, expected = X[row : row + 1, :length], numpy(output)[row : row + 1]
        assert_steps(layer.attend_step, layer.initial_cache(1, 13), one, expected)
    whole = numpy(layer(X, X, use_causal_mask=True))
    following = ([[0], [1]], [[7, 8, 9, 10], [2, 3, 4, 5]])
    assert_steps(layer.attend_step, cache, X[following], whole[following])


@having("crosses", "steps")
def test_a_projected_source_equals_the_whole(mechanism):
    layer = called(mechanism.make(), X, SOURCE)
    mask = np.arange(7)[None, :] < np.array([[3], [0]])
    expected = numpy(layer(X, SOURCE, value_mask=mask))
    projected = layer.project_source(SOURCE, value_mask=mask)
    assert_close(layer.attend_source(X, projected), expected, atol=5e-6)


@lacking("causal")
def test_a_decoder_says_that_there_is_no_causal_form(mechanism):
    with pytest.raises(UserError, match="must support causal masking. Received: self_attention="):
        layers.TransformerDecoderBlock(mechanism.make(), layers.FeedForward(5))
    refused("use_causal_mask=True", mechanism.make(), X, X, use_causal_mask=True)


def test_a_decoder_says_that_there_are_no_steps():
    block = layers.TransformerDecoderBlock(
        keras.layers.MultiHeadAttention(2, 3), layers.FeedForward(5)
    )
    refused("step by step.*Received: self_attention=", block.initial_cache, 2, 13)


@having()
def test_in_an_encoder_block(mechanism):
    block = called(layers.TransformerEncoderBlock(mechanism.make(), layers.FeedForward(5)), X)
    found = numpy(block(X, padding_mask=REAL))
    assert_close(found[:1, :4], block(X[:1, :4]), atol=1e-5)


@having("causal", "steps")
def test_in_a_decoder_block(mechanism):
    block = called(layers.TransformerDecoderBlock(mechanism.make(), layers.FeedForward(5)), X)
    expected = numpy(block(X))
    assert_steps(block.decode_step, block.initial_cache(2, 13), X, expected, atol=1e-5)


@having()
def test_lengths_that_only_the_running_graph_knows(mechanism):
    layer = built(mechanism)
    x = keras.Input((None, 6))
    mask = keras.Input((None,), dtype="bool")
    model = keras.Model([x, mask], layer(x, x, query_mask=mask, value_mask=mask))
    expected = numpy(layer(X, X, query_mask=REAL, value_mask=REAL))
    assert_close(model.predict([X, REAL], verbose=0), expected, atol=5e-6)


def classes_of(layer):
    """The class of a layer, and that of the attention that it runs in segments."""
    return {type(layer), type(getattr(layer, "attention", layer))}


def test_every_named_mechanism_is_in_the_table():
    held = set().union(*(classes_of(mechanism.make()) for mechanism in MECHANISMS.values()))
    named = {
        kind: classes_of(named_attention(kind, num_heads=2, key_dim=4, max_length=16))
        for kind in ATTENTION
    }
    assert {kind for kind, classes in named.items() if not classes <= held} == set()
