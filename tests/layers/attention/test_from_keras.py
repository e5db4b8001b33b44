"""Copies of Keras' own attention layers against the layers themselves."""

import doctest
from functools import partial

import keras
import numpy as np
import pytest

from keras_attn.layers import LocalAttention, MultiHeadAttention
from keras_attn.validation import UserError
from tests.harness import assert_close, assert_saved, numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

X = numbers(1, 2, 5, 7)  # (batch, target, features)
SOURCE = numbers(2, 2, 11, 13)  # (batch, source, features)
KEYS = numbers(3, 2, 11, 3)
GRID = numbers(4, 2, 3, 5, 7)  # (batch, rows, columns, features)
OTHER_GRID = numbers(5, 2, 3, 11, 13)
SOURCE_REAL = np.arange(11) < np.array([[11], [4]])


def some_mask(*shape):
    mask = np.random.default_rng(4).random(shape) < 0.5
    mask[..., 0] = True
    return mask


MHA, GQA = keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention
CAUSAL = {"use_causal_mask": True}
BOTH_MASKS = {"attention_mask": some_mask(2, 5, 11), "key_mask": SOURCE_REAL}
# Lengths of values by the axes that are attended to, and shapes of masks.
AXES = {None: (11, 13), (1, 2): (11, 13), (2, 1): (11, 13), (1,): (11, 5), 2: (3, 13), -2: (3, 13)}
MASKS = {
    None: [(2, 3, 5, 11, 13), (2, 2, 3, 5, 11, 13)],
    (2, 1): [(2, 5, 3, 13, 11)],
    (1,): [(2, 3, 11), (2, 5, 3, 11), (2, 5, 2, 3, 11)],
}
PLAIN = {"num_heads": 2, "key_dim": 3}
GROUPED = {"head_dim": 3, "num_query_heads": 6, "num_key_value_heads": 2}
CASES = {
    "self": (MHA, PLAIN, (X, X), {}),
    "causal": (MHA, PLAIN, (X, X), CAUSAL),
    "cross": (MHA, PLAIN, (X, SOURCE), {"value_mask": SOURCE_REAL}),
    "keys": (MHA, PLAIN, (X, SOURCE, KEYS), BOTH_MASKS),
    "sizes": (MHA, PLAIN | {"value_dim": 5, "output_shape": (4, 2)}, (X, SOURCE), {}),
    "one size": (MHA, PLAIN | {"output_shape": 17}, (X, SOURCE), {}),
    "no bias": (MHA, PLAIN | {"use_bias": False}, (X, X), {}),
    "gate": (MHA, PLAIN | {"use_gate": True, "value_dim": 5}, (X, SOURCE), {}),
    "all axes": (MHA, PLAIN, (GRID, OTHER_GRID), {}),
    "rows": (MHA, PLAIN | {"attention_axes": 2}, (GRID, OTHER_GRID), {}),
    "key": (MHA, PLAIN, (X, SOURCE, KEYS), {}),
    "key mask": (MHA, PLAIN, (X, SOURCE, KEYS), {"key_mask": some_mask(2, 11)}),
    "mask": (MHA, PLAIN, (X, SOURCE), {"attention_mask": some_mask(2, 5, 11)}),
    "mask by head": (MHA, PLAIN, (X, SOURCE), {"attention_mask": some_mask(2, 2, 5, 11)}),
    "mask, causal": (MHA, PLAIN, (X, X), CAUSAL | {"attention_mask": some_mask(2, 5, 5)}),
    "value size": (MHA, PLAIN | {"value_dim": 5}, (X, SOURCE), {}),
    "causal window": (MHA, PLAIN | {"sliding_window": 3}, (X, X), CAUSAL),
    "window across": (MHA, PLAIN | {"sliding_window": 4}, (X, SOURCE), {}),
    "window": (MHA, PLAIN | {"sliding_window": 2}, (X, X), {}),
    "dropout": (MHA, PLAIN | {"dropout": 0.3, "seed": 7}, (X, X), {}),
    "grouped": (GQA, GROUPED, (X, X), CAUSAL),
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
    **{
        f"axes {axes}, mask {mask}": (
            MHA,
            PLAIN | {"attention_axes": axes},
            (GRID, numbers(2, 2, *sizes, 17)),
            {} if mask is None else {"attention_mask": some_mask(*mask)},
        )
        for axes, sizes in AXES.items()
        for mask in (None, *MASKS.get(axes, []))
    },
    "axes, gate": (
        MHA,
        PLAIN | {"attention_axes": (1,), "use_gate": True},
        (GRID, numbers(2, 2, 11, 5, 17)),
        {},
    ),
    "axes, sizes": (MHA, PLAIN | {"value_dim": 5, "output_shape": (4, 2)}, (GRID, OTHER_GRID), {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("with_scores", [False, True])
def test_copies_return_what_the_layer_returns(case, with_scores):
    kind, arguments, inputs, options = CASES[case]
    # Keras always gives scores: without, its JAX path fails where value and key sizes differ.
    theirs = partial(kind(**arguments), return_attention_scores=True)
    theirs(*inputs)
    spread_weights(theirs.func)
    expected = theirs(*inputs, **options)
    ours = MultiHeadAttention.from_keras(theirs.func)
    assert ours.built
    found = ours(*inputs, **options, return_attention_scores=with_scores)
    assert_close(found, expected if with_scores else expected[0], rtol=1e-6, atol=2e-6)
    assert ours.count_params() == theirs.func.count_params()


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
    assert_saved(model, X, tmp_path)


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
