"""Copies of Keras' own attention layers against the layers themselves."""

import doctest

import keras
import numpy as np
import pytest

from keras_attn.layers import LocalAttention, MultiHeadAttention
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

X = numbers(1, 2, 5, 7)  # (batch, target, features)
SOURCE = numbers(2, 2, 11, 13)  # (batch, source, features)
KEYS = numbers(3, 2, 11, 3)
GRID = numbers(4, 2, 3, 5, 7)  # (batch, rows, columns, features)
OTHER_GRID = numbers(5, 2, 3, 11, 13)
SOURCE_REAL = np.arange(11) < np.array([[11], [4]])
PAIRS = np.random.default_rng(6).random((2, 5, 11)) < 0.7
PAIRS[..., 0] = True

MHA, GQA = keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention
# With which Keras takes a path on JAX that allows values of another size than keys.
SCORES = {"return_attention_scores": True}
PLAIN = {"num_heads": 2, "key_dim": 3}
GROUPED = {"head_dim": 3, "num_query_heads": 6, "num_key_value_heads": 2}
CASES = {
    "self": (MHA, PLAIN, (X, X), {}),
    "causal": (MHA, PLAIN, (X, X), {"use_causal_mask": True}),
    "cross": (MHA, PLAIN, (X, SOURCE), {"value_mask": SOURCE_REAL}),
    "keys": (MHA, PLAIN, (X, SOURCE, KEYS), {"attention_mask": PAIRS, "key_mask": SOURCE_REAL}),
    "sizes": (MHA, PLAIN | {"value_dim": 5, "output_shape": (4, 2)}, (X, SOURCE), SCORES),
    "one size": (MHA, PLAIN | {"output_shape": 17}, (X, SOURCE), {}),
    "no bias": (MHA, PLAIN | {"use_bias": False}, (X, X), {}),
    "gate": (MHA, PLAIN | {"use_gate": True, "value_dim": 5}, (X, SOURCE), SCORES),
    "all axes": (MHA, PLAIN, (GRID, OTHER_GRID), {}),
    "rows": (MHA, PLAIN | {"attention_axes": 2}, (GRID, OTHER_GRID), {}),
    "window": (MHA, PLAIN | {"sliding_window": 2}, (X, X), {}),
    "dropout": (MHA, PLAIN | {"dropout": 0.3, "seed": 7}, (X, X), {}),
    "grouped": (GQA, GROUPED, (X, X), {"use_causal_mask": True}),
    "grouped cross": (GQA, GROUPED, (X, SOURCE), {"value_mask": SOURCE_REAL}),
    "grouped gate": (GQA, GROUPED | {"use_gate": True, "use_bias": False}, (X, X), {}),
    "multi-query": (GQA, GROUPED | {"num_key_value_heads": 1}, (X, X), {}),
    "others": (
        MHA,
        PLAIN
        | {
            "kernel_initializer": "he_normal",
            "bias_initializer": "ones",
            "kernel_regularizer": "l2",
            "bias_regularizer": "l1",
            "kernel_constraint": "max_norm",
            "bias_constraint": "max_norm",
            "name": "theirs",
            "trainable": False,
        },
        (X, X),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_copies_return_what_the_layer_returns(case):
    kind, arguments, inputs, options = CASES[case]
    theirs = kind(**arguments)
    theirs(*inputs, **options)
    expected = spread_weights(theirs)(*inputs, **options)
    ours = MultiHeadAttention.from_keras(theirs)
    assert ours.built
    for e, f in zip(*map(keras.tree.flatten, (expected, ours(*inputs, **options))), strict=True):
        np.testing.assert_allclose(numpy(f), numpy(e), rtol=3e-6, atol=3e-6)
    assert ours.count_params() == theirs.count_params()


@pytest.mark.parametrize("case", CASES)
def test_copies_have_the_arguments_of_the_layer(case):
    kind, arguments, _, _ = CASES[case]
    theirs = kind(**arguments)
    ours = MultiHeadAttention.from_keras(theirs)
    assert not ours.built
    names = {"head_dim": "key_dim", "num_query_heads": "num_heads"}
    expected = {names.get(name, name): value for name, value in theirs.get_config().items()}
    found = ours.get_config()
    assert {name: found[name] for name in expected} == expected


def test_flash_attention_is_taken_over():
    # Which Keras computes on GPUs alone.
    theirs = keras.layers.MultiHeadAttention(2, 3, flash_attention=True)
    assert MultiHeadAttention.from_keras(theirs).flash_attention is True
    assert MultiHeadAttention.from_keras(MHA(2, 3)).flash_attention is None


def test_a_copy_has_weights_of_its_own():
    theirs = keras.layers.MultiHeadAttention(2, 3)
    theirs(X, X)
    ours = MultiHeadAttention.from_keras(theirs)
    before = numpy(ours(X, X))
    for weight in theirs.weights:
        weight.assign(weight * 2)
    np.testing.assert_array_equal(numpy(ours(X, X)), before)


def test_a_copy_in_half_precision_computes_in_it():
    theirs = keras.layers.MultiHeadAttention(2, 3, dtype="mixed_bfloat16")
    theirs(X, X)
    ours = MultiHeadAttention.from_keras(theirs)
    assert ours.compute_dtype == "bfloat16"
    assert {weight.dtype for weight in ours.weights} == {"float32"}


def test_a_copy_is_saved_and_loaded(tmp_path):
    theirs = keras.layers.MultiHeadAttention(2, 3)
    inputs = keras.Input((5, 7))
    theirs(inputs, inputs)
    ours = MultiHeadAttention.from_keras(theirs)
    model = keras.Model(inputs, ours(inputs, inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy(loaded(X)), numpy(model(X)))


def test_other_layers_are_refused():
    with pytest.raises(UserError, match=r"must be a keras\.layers\.MultiHeadAttention.*'Dense'"):
        MultiHeadAttention.from_keras(keras.layers.Dense(3))
    refused("LocalAttention", MultiHeadAttention.from_keras, LocalAttention(2, 3, 4))


def test_a_quantized_layer_is_refused():
    theirs = keras.layers.MultiHeadAttention(2, 4)
    theirs(X, X)
    for part in theirs._flatten_layers(include_self=False):
        if isinstance(part, keras.layers.EinsumDense):
            part.quantize("int8")
    refused("must not be quantized.*int8", MultiHeadAttention.from_keras, theirs)


def test_the_example_of_the_docstring_runs():
    names = {"keras": keras, "MultiHeadAttention": MultiHeadAttention}
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(MultiHeadAttention.from_keras, "from_keras", globs=names)
    assert doctest.DocTestRunner().run(example) == (0, 6)
