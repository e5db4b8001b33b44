"""What goes into the fused kernel and what comes out of it; a dense one stands in where none is."""

import itertools
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import attention, dot_product_attention, fused_attention
from keras_attn.ops.autodiff import vector_jacobian_product

RNG = np.random.default_rng(1)
HEADS, WIDTH = 4, 8
BF16 = 0.02  # of the largest number


def tensors(target, source, kv_heads=HEADS, dtype="bfloat16"):
    shapes = (2, HEADS, target, WIDTH), (2, kv_heads, source, WIDTH), (2, kv_heads, source, WIDTH)
    return [ops.convert_to_tensor(RNG.standard_normal(shape), dtype) for shape in shapes]


def masks(kind, target, source):
    keys = np.arange(source) < np.array([[source], [source // 2]])
    return {
        "none": (),
        "keys": (keys[:, None, None],),
        "queries": ((np.arange(target) < np.array([[1], [target]]))[:, None, :, None],),
        "pairs": (RNG.random((2, 1, target, source)) < 0.5,),
        "pairs of heads": (RNG.random((1, HEADS, target, source)) < 0.5,),
        "nothing": ((keys & [[True], [False]])[:, None, None],),
        "keys and pairs": (keys[:, None, None], RNG.random((1, 1, target, source)) < 0.5),
    }[kind]


@pytest.fixture
def calls(monkeypatch):
    """Arguments of each call of the kernel, for which Keras' dense computation stands in."""
    if keras.backend.backend() == "torch" or fused_attention._cudnn_runs():
        return None
    found, dense = [], ops.dot_product_attention

    def stand_in(query, key, value, mask=None, flash_attention=None, **options):
        assert flash_attention
        assert query.dtype == key.dtype == value.dtype
        assert query.shape[1] % 2 == key.shape[1] % 2 == 0
        if mask is not None:
            assert tuple(mask.shape[2:]) == (query.shape[1], key.shape[1])
            # The real one gives NaN as gradients of what sees nothing.
            sees = ops.convert_to_numpy(mask).any(axis=-1)
            assert sees[:, :, : sees.shape[2] - 1].all()
        found.append(options)
        # TensorFlow's dense path knows no groups of heads.
        group = query.shape[2] // key.shape[2]
        key, value = (ops.repeat(tensor, group, axis=2) for tensor in (key, value))
        return dense(query, key, value, mask=mask, **options)

    monkeypatch.setattr(fused_attention, "_cudnn_runs", lambda: True)
    monkeypatch.setattr(fused_attention.ops, "dot_product_attention", stand_in)
    return found


@pytest.mark.parametrize(
    "kind", ["none", "keys", "queries", "pairs", "pairs of heads", "nothing", "keys and pairs"]
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_equals_dense_attention(calls, kind, is_causal):
    lengths = [(6, 6), (7, 7)] if is_causal else [(6, 6), (7, 7), (6, 9), (5, 8)]
    for (target, source), kv_heads in itertools.product(lengths, (HEADS, 2)):
        inputs = tensors(target, source, kv_heads)
        mask = masks(kind, target, source)
        if calls is not None:
            calls.clear()
        options = {"mask": mask, "is_causal": is_causal, "scale": 0.3}
        found = dot_product_attention(*inputs, **options, implementation="flash")
        exact = [ops.cast(x, "float32") for x in inputs]
        expected = dot_product_attention(*exact, **options, implementation="dense")
        found, expected = (ops.convert_to_numpy(ops.cast(x, "float32")) for x in (found, expected))
        np.testing.assert_allclose(found, expected, atol=BF16 * np.abs(expected).max())
        np.testing.assert_array_equal(*((x == 0).all(axis=-1) for x in (found, expected)))
        if calls is not None:
            assert calls == [{"scale": 0.3, "is_causal": is_causal}]


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        ({}, {"dropout": 0.1}),
        ({}, {"bias": np.zeros((1, 1, 6, 6), "float32")}),
        ({}, {"return_scores": True}),
        ({}, {"implementation": "dense"}),
        ({}, {"implementation": "chunked"}),
        ({"dtype": "float32"}, {}),
        ({"dtype": "float16"}, {"mask": masks("keys", 6, 6)}),
        ({"source": 8}, {"is_causal": True}),
        ({"target": 1}, {}),
    ],
)
def test_what_the_kernel_cannot_do_is_computed_otherwise(calls, monkeypatch, shapes, options):
    monkeypatch.setattr(attention, "AUTO_FUSED_HEAD_SCORES", 0)
    inputs = tensors(**{"target": 6, "source": 6, **shapes})
    seed = keras.random.SeedGenerator(1)
    dot_product_attention(*inputs, seed=seed, **options)
    assert not calls


@pytest.mark.parametrize("width", [6, 136])
def test_heads_that_the_kernel_does_not_take(calls, width):
    inputs = [ops.ones((1, 1, 4, width), "bfloat16")] * 3
    dot_product_attention(*inputs, implementation="flash")
    narrow = [ops.ones((1, 1, 4, 8), "bfloat16")] * 2
    wide = ops.ones((1, 1, 4, 16), "bfloat16")
    dot_product_attention(*narrow, wide, implementation="flash")
    assert not calls


def test_a_mask_that_is_too_large(calls, monkeypatch):
    inputs, mask = tensors(6, 6), masks("pairs", 6, 6)
    monkeypatch.setattr(fused_attention, "MAX_MASK_PAIRS", 2 * 6 * 6 - 1)
    dot_product_attention(*inputs, mask=mask, implementation="flash")
    assert not calls
    monkeypatch.setattr(fused_attention, "MAX_MASK_PAIRS", 2 * 6 * 6)
    dot_product_attention(*inputs, mask=mask, implementation="flash")
    assert calls is None or len(calls) == 1


@pytest.mark.parametrize(("length", "times"), [(6, 0), (63, 0), (64, 1)])
def test_short_sequences_are_left_to_dense_attention(calls, length, times):
    dot_product_attention(*tensors(length, length))
    assert calls is None or len(calls) == times


@pytest.mark.parametrize("kind", ["none", "keys", "nothing"])
def test_gradients_equal_those_of_dense_attention(calls, kind):
    inputs, upstream = tensors(7, 7), tensors(7, 7)[0]
    attends = (
        partial(dot_product_attention, mask=masks(kind, 7, 7), implementation=how)
        for how in ("flash", "dense")
    )
    found, expected = (vector_jacobian_product(each, *inputs)[1](upstream) for each in attends)
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = (ops.convert_to_numpy(ops.cast(x, "float32")) for x in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, atol=BF16 * np.abs(theirs).max())
