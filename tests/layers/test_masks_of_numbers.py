"""Masks as Keras' layers take them: of any number type, over pairs alone, never added."""

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.layers.attention.global_local_streams import GlobalLocalPieces
from keras_attn.validation import UserError
from tests.backends import named
from tests.harness import assert_close, numbers, numpy
from tests.layers.judges import spread_weights
from tests.layers.mechanisms import MECHANISMS
from tests.refusals import refused

X = numbers(1, 2, 5, 6)
REAL = np.array([[True, True, True, False, False], [True] * 5])
PAIRS = np.tril(np.ones((5, 5), bool))
PAIRS[3, 0] = False
KEYS = np.array([[True, True, False, True, True]])
DTYPES = ("float32", "float64", "int32", "uint8")
REFUSED = "must hold 1 .* and 0 elsewhere; additive masks are not supported. Received: .*=.-10000"
KIND = dict.fromkeys(MECHANISMS, "mechanism") | {
    "encoder": lambda: layers.TransformerEncoderBlock(*parts()),
    "encoder, recomputed": lambda: layers.TransformerEncoderBlock(*parts(), recompute=True),
    "decoder": lambda: layers.TransformerDecoderBlock(*parts()),
    "reversible": lambda: layers.ReversibleBlock(*parts()),
    "reversible stack": lambda: layers.ReversibleStack([layers.ReversibleBlock(*parts())]),
}
BLOCKS = [name for name in KIND if name not in MECHANISMS]
ON_JAX = ["multi-head", "local", "encoder", "reversible"]


def parts():
    return layers.MultiHeadAttention(2, 3), layers.FeedForward(11)


def made(name):
    layer = MECHANISMS[name].make() if name in MECHANISMS else KIND[name]()
    called(layer)
    return spread_weights(layer)


def called(layer, x=X, **options):
    """What a layer makes of one sequence, an attention layer of it in all roles."""
    x = x if isinstance(x, keras.KerasTensor) else keras.ops.convert_to_tensor(x)
    streams = 1 if "inputs" in layer._call_signature.parameters else 2
    return keras.tree.flatten(layer(*[x] * streams, **options))[0]


def given(name):
    """Masks by the argument that takes them."""
    if name not in MECHANISMS:
        return [("padding_mask", REAL), ("attention_mask", PAIRS), ("mask", REAL)]
    pairs = [PAIRS, PAIRS[None], np.stack([PAIRS, PAIRS.T])[:, None]]
    keys = [KEYS, KEYS[None], KEYS[None, None]]
    roles = [(role, REAL) for role in ("query_mask", "value_mask", "key_mask")]
    wanted = pairs if MECHANISMS[name].pairs else keys
    return roles + [("attention_mask", mask) for mask in wanted]


def same_rank(name, argument, mask):
    """The mask as the layer took it before, boolean and of rank 3 or 4."""
    return {argument: mask[None] if argument == "attention_mask" and mask.ndim == 2 else mask}


@pytest.mark.parametrize("name", named(KIND, ON_JAX, others=3))
def test_ones_and_zeros_count_as_true_and_false(name):
    layer = made(name)
    free = numpy(called(layer))
    for number, (argument, mask) in enumerate(given(name)):
        expected = numpy(called(layer, **same_rank(name, argument, mask)))
        assert not np.allclose(expected, free, atol=1e-4) or "random" in name, argument
        dtype = DTYPES[number % len(DTYPES)]
        found = numpy(called(layer, **{argument: mask.astype(dtype)}))
        np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=f"{argument} {dtype}")


@pytest.mark.parametrize("name", KIND)
def test_a_mask_to_be_added_is_refused(name):
    layer = made(name)
    for argument, mask in given(name):
        added = np.where(mask, 0, -10000).astype("float32")
        refused(f"`{argument}` {REFUSED}", called, layer, **{argument: added})


def traced(layer, argument, mask):
    """What a compiled model makes of a mask, whose values the layer cannot see."""
    inputs = keras.Input(X.shape[1:]), keras.Input(mask.shape[1:], dtype=mask.dtype)
    model = keras.Model(inputs, called(layer, inputs[0], **{argument: inputs[1]}))
    return model.predict_on_batch([X, mask])


@pytest.mark.parametrize("name", named(KIND, ON_JAX, others=3))
def test_while_a_graph_is_traced_it_fails_or_gives_nothing_but_nan(name):
    layer = made(name)
    argument = "attention_mask" if name in MECHANISMS else "padding_mask"
    allowed = np.repeat(given(name)[4][1], 2, 0) if name in MECHANISMS else REAL
    right = traced(layer, argument, allowed.astype("float32"))
    expected = numpy(called(layer, **{argument: allowed}))
    np.testing.assert_allclose(right, expected, atol=1e-5)
    added = np.where(allowed, 0, -10000).astype("float32")
    if keras.backend.backend() == "jax":
        assert np.isnan(traced(layer, argument, added)).all()
        return
    if keras.backend.backend() == "torch":  # which runs what others trace
        refused(f"`{argument}` {REFUSED}", traced, layer, argument, added)
        return
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold 1 .* not supported"):
        traced(layer, argument, added)


@pytest.mark.tensorflow
def test_where_xla_compiles_it_gives_nothing_but_nan():
    import tensorflow as tf

    layer = made("multi-head")
    compiled = tf.function(
        lambda mask: called(layer, attention_mask=mask), jit_compile=True, autograph=False
    )
    assert np.isnan(compiled(tf.fill((2, 5, 5), -10000.0))).all()
    assert np.isfinite(compiled(tf.ones((2, 5, 5)))).all()


def test_the_masks_of_two_sequences():
    few, real = numbers(2, 2, 3, 6), np.array([[True, True, False], [True] * 3])
    pieces = GlobalLocalPieces(None, np.tile(real[:, None], (1, 5, 1)))
    attention = layers.GlobalLocalAttention(2, 3, 2)
    block = layers.GlobalLocalEncoderBlock(attention, layers.FeedForward(11))
    decoder = layers.TransformerDecoderBlock(*parts(), layers.MultiHeadAttention(2, 3))
    cases = (
        (lambda **masks: attention(X, X, global_query=few, **masks), "global_query_mask", real),
        (lambda **masks: block(X, few, **masks), "global_padding_mask", real),
        (lambda **masks: block(X, few, **masks), "padding_mask", REAL),
        (lambda **masks: decoder(X, few, **masks), "source_padding_mask", real),
    )
    for call, argument, mask in cases:
        expected, found = (call(**{argument: m}) for m in (mask, mask.astype("float32")))
        assert_close(found, expected, atol=1e-6)
        refused(f"`.*mask` {REFUSED}", call, **{argument: np.where(mask, 0, -10000)})
    with pytest.raises(UserError, match=f"`local_to_global` {REFUSED}"):
        attention(X, X, global_query=few, pair_masks=GlobalLocalPieces(None, pieces[1] * -10000))
