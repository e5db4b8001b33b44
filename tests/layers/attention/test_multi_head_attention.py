"""MultiHeadAttention against NumPy where Keras has nothing; test_from_keras.py has the rest."""

import inspect

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from keras_attn.layers.attention import multi_head_attention
from tests.harness import numbers, numpy
from tests.layers.attention.test_from_keras import some_mask
from tests.layers.judges import naive_attention, spread_weights
from tests.refusals import refused

X = numbers(1, 2, 5, 7)  # (batch, target, features)
SOURCE = numbers(2, 2, 11, 13)  # (batch, source, features)
KEY = numbers(3, 2, 11, 3)


def test_constructor_and_call_are_those_of_keras():
    for method in ("__init__", "call"):
        theirs = inspect.signature(getattr(keras.layers.MultiHeadAttention, method)).parameters
        ours = inspect.signature(getattr(MultiHeadAttention, method)).parameters
        for name, parameter in theirs.items():
            assert ours[name].default == parameter.default, name
        assert [name for name in ours if name in theirs] == list(theirs)


@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("fused", [True, False])
def test_grouped_queries_equal_naive_attention(key_heads, fused):
    layer = MultiHeadAttention(6, 2, value_dim=5, num_key_value_heads=key_heads)
    layer.build(*[X.shape] * (1 if fused else 2))
    spread_weights(layer)
    assert len(layer.projections) == (1 if fused else 2)
    mask = some_mask(2, 5, 5)
    output, scores = layer(X, X, attention_mask=mask, return_attention_scores=True)
    expected, expected_scores = naive_attention(layer, X, X, mask=mask[:, None])
    np.testing.assert_allclose(numpy(output), expected, atol=2e-6)
    np.testing.assert_allclose(numpy(scores), expected_scores, atol=2e-6)


def test_a_layer_built_for_one_sequence_takes_others():
    layer = MultiHeadAttention(2, 3, num_key_value_heads=1)
    layer.build(X.shape)
    spread_weights(layer)
    value, key = numbers(5, 2, 11, 7), numbers(6, 2, 11, 7)
    for inputs in ((X, value), (X, value, key), (X, X, value[:, :5]), (X, value[:, :5], X)):
        expected, _ = naive_attention(layer, *inputs)
        np.testing.assert_allclose(numpy(layer(*inputs)), expected, atol=2e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"num_key_value_heads": 2}, {"sliding_window": 3}])
def test_in_chunks_equals_whole(arguments, causal):
    whole = MultiHeadAttention(4, 3, flash_attention=False, **arguments)
    chunks = MultiHeadAttention(4, 3, flash_attention=True, **arguments)
    query = numbers(7, 2, 37, 7)
    whole(query, query), chunks(query, query)
    chunks.set_weights(spread_weights(whole).get_weights())
    options = {"use_causal_mask": causal, "value_mask": some_mask(2, 37)}
    expected = numpy(whole(query, query, **options))
    np.testing.assert_allclose(numpy(chunks(query, query, **options)), expected, atol=2e-6)


@pytest.mark.tensorflow
@pytest.mark.parametrize("masked", [False, True])
def test_in_chunks_in_a_graph_of_unknown_lengths(masked):
    import tensorflow as tf

    layer = MultiHeadAttention(2, 4, flash_attention=True)
    shapes = [tf.TensorSpec((None, None, 8)), tf.TensorSpec((None, None), tf.bool)]
    graph = tf.function(
        lambda x, mask: layer(x, x, value_mask=mask if masked else None),
        input_signature=shapes,
        autograph=False,
    )
    x, mask = numbers(1, 2, 6, 8), some_mask(2, 6)
    expected = layer(x, x, value_mask=mask if masked else None)
    # As a query too what is padding counts as 0 where query and value are one tensor.
    real = mask if masked else np.ones_like(mask)
    np.testing.assert_allclose(numpy(graph(x, mask))[real], numpy(expected)[real], atol=2e-6)


def test_shapes_of_cross_attention():
    query, value = keras.Input((5, 7)), keras.Input((None, 13))
    layer = MultiHeadAttention(3, 2, output_shape=(4, 2))
    output, scores = layer(query, value, return_attention_scores=True)
    assert output.shape == (None, 5, 4, 2)
    assert scores.shape == (None, 3, 5, None)
    # All masks by position, as Keras takes them.
    mask = np.ones((2, 5), bool)
    outputs = keras.Model([query, value], [output, scores])([X, SOURCE])
    assert [tuple(part.shape) for part in outputs] == [(2, 5, 4, 2), (2, 3, 5, 11)]
    symbolic = MultiHeadAttention(3, 2)(query, value, None, keras.Input((5,), dtype="bool"))
    assert symbolic.shape == (None, 5, 7)
    assert tuple(MultiHeadAttention(3, 2)(X, SOURCE, None, mask).shape) == (2, 5, 7)


def test_dropout_differs_between_calls_and_is_off_at_inference():
    layer = MultiHeadAttention(3, 2, dropout=0.5, seed=3)
    layer(X, X)
    still = [numpy(layer(X, X, training=False)) for _ in range(2)]
    first, second = (numpy(layer(X, X, training=True)) for _ in range(2))
    np.testing.assert_array_equal(*still)
    assert not np.allclose(first, second)
    assert not np.allclose(first, still[0])
    again = MultiHeadAttention(3, 2, dropout=0.5, seed=3)
    again(X, X)
    again.set_weights([*layer.get_weights()[:-1], again.get_weights()[-1]])
    np.testing.assert_array_equal(numpy(again(X, X, training=True)), first)


def test_scores_are_those_before_dropout():
    layer = MultiHeadAttention(3, 2, dropout=0.9)
    layer(X, X)
    _, scores = layer(X, X, return_attention_scores=True, training=True)
    np.testing.assert_allclose(numpy(scores).sum(-1), 1, atol=1e-6)


def test_seeded_kernels_differ_from_role_to_role():
    layer = MultiHeadAttention(2, 3, kernel_initializer=keras.initializers.GlorotUniform(seed=5))
    layer.build(X.shape)
    query, key, value = np.split(numpy(layer.projections[0].kernel), 3, axis=1)
    assert not np.allclose(query, key)
    assert not np.allclose(key, value)
    # The scale of each part is that of a kernel of its own, (7, 6), not of the three together.
    limit = np.sqrt(6 / (7 + 6))
    assert 0.8 * limit < np.abs(query).max() <= limit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 0}, "`num_heads` must be a positive integer. Received: num_heads=0."),
        ({"key_dim": 2.5}, "`key_dim` must be a positive integer. Received: key_dim=2.5."),
        ({"value_dim": -1}, "`value_dim` must be a positive integer. Received: value_dim=-1."),
        ({"dropout": 1.5}, r"`dropout` must be a number in \[0, 1\). Received: dropout=1.5."),
        (
            {"num_key_value_heads": 2},
            "must divide `num_heads`. Received: num_key_value_heads=2, num_heads=3.",
        ),
        ({"sliding_window": 0}, "`sliding_window` must be .* Received: sliding_window=0."),
        ({"output_shape": (4, -3)}, "`output_shape` must be .* Received: output_shape=-3."),
        ({"flash_attention": "yes"}, "`flash_attention` must be .* flash_attention='yes'."),
    ],
)
def test_mistakes_in_the_constructor(arguments, message):
    refused(message, MultiHeadAttention, **{"num_heads": 3, "key_dim": 2} | arguments)


def test_mistakes_in_a_call():
    def told(message, *inputs, flash_attention=None, **options):
        layer = MultiHeadAttention(3, 2, flash_attention=flash_attention)
        refused(message, layer, *inputs, **options)

    told(r"needs inputs \(batch, length, features\). Received: rank=2.", X[0], X[0])
    shapes = r"value_shape=\(2, 11, 13, 1\), query_shape=\(2, 5, 7\)."
    told(rf"`value` must have as many axes as `query`. Received: {shapes}", X, SOURCE[..., None])
    told(r"must be equal. .*key_shape=\(2, 5, 3\)", X, SOURCE, KEY[:, :5])
    message = r"`attention_mask` must have rank 2 or 3 or 4. Received: attention_mask_shape=\(5,\)."
    told(message, X, X, attention_mask=np.ones(5, bool))
    told(r"value_mask_shape=\(2, 4\), expected=\(2, 5\)", X, X, value_mask=np.ones((2, 4), bool))
    message = "not return them. Received: return_attention_scores=True, flash_attention=True."
    told(message, X, X, flash_attention=True, return_attention_scores=True)


@pytest.mark.parametrize(
    ("flash_attention", "expected"), [(None, "dense"), (True, "flash"), (False, "dense")]
)
def test_the_global_switch_of_flash_attention(monkeypatch, flash_attention, expected):
    """It counts where the layer leaves the choice open, whenever the layer was made."""
    asked, layer = [], MultiHeadAttention(2, 3, flash_attention=flash_attention)
    attend = multi_head_attention.dot_product_attention

    def noted(*arguments, **options):
        asked.append(options["implementation"])
        return attend(*arguments, **options)

    monkeypatch.setattr(multi_head_attention, "dot_product_attention", noted)
    x = np.ones((1, 4, 6), "float32")
    keras.config.disable_flash_attention()
    try:
        layer(x, x)
    finally:
        keras.config.enable_flash_attention()
    layer(x, x)
    assert asked == [expected, "auto" if flash_attention is None else expected]
