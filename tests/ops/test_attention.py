import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import attention, dot_product_attention
from keras_attn.ops.blockwise.chunked_attention import chunked_attention
from tests.harness import assert_close, assert_same
from tests.ops.naive import assert_naive, context_and_gradients, naive_attention, normal
from tests.refusals import refused

BATCH, HEADS, KV_HEADS, TARGET, SOURCE, KEY_DIM, VALUE_DIM = 2, 6, 3, 11, 13, 5, 7


def inputs(target=TARGET, source=SOURCE, kv_heads=KV_HEADS):
    return (
        normal(BATCH, HEADS, target, KEY_DIM, seed=2),
        normal(BATCH, kv_heads, source, KEY_DIM, seed=3),
        normal(BATCH, kv_heads, source, VALUE_DIM, seed=4),
        normal(BATCH, HEADS, target, VALUE_DIM, seed=5),
    )


def random_mask(*shape):
    return np.random.default_rng([7, *shape]).random(shape) < 0.6


def dead_rows():
    mask = random_mask(BATCH, HEADS, TARGET, SOURCE)
    mask[0, 1, 3:9] = False
    mask[1, :, 0] = False
    return mask


def small_blocks(query, key, value, mask=None, scale=None, is_causal=False, dropout=0.0, seed=None):
    """The chunked path, with blocks that do not divide the lengths."""
    masks = mask if isinstance(mask, tuple) else () if mask is None else (mask,)
    masks = tuple(ops.convert_to_tensor(part) for part in masks)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    dtype = attention.computing_dtype(query.dtype)
    return chunked_attention(
        query, key, value, masks, scale, is_causal, dropout, seed, dtype, query_block=4, key_block=5
    )


def dense(*arguments, **options):
    return dot_product_attention(*arguments, implementation="dense", **options)


def chunked(*arguments, **options):
    return dot_product_attention(*arguments, implementation="chunked", **options)


IMPLEMENTATIONS = pytest.mark.parametrize("attend", [dense, chunked, small_blocks])

MASKS = {
    "none": None,
    "keys": random_mask(BATCH, 1, 1, SOURCE),
    "queries": random_mask(BATCH, 1, TARGET, 1),
    "pairs": random_mask(BATCH, 1, TARGET, SOURCE),
    "heads": random_mask(1, HEADS, TARGET, SOURCE),
    "keys of heads": random_mask(BATCH, HEADS, 1, SOURCE),
    "dead rows": dead_rows(),
    "all dead": np.zeros((1, 1, 1, SOURCE), bool),
    "several": (
        random_mask(BATCH, 1, 1, SOURCE),
        random_mask(BATCH, 1, TARGET, 1),
        random_mask(1, 1, TARGET, SOURCE),
    ),
}


BY_ORDER = {
    False: ["none", "keys", "heads", "dead rows", "several"],
    True: ["none", "queries", "pairs", "keys of heads", "dead rows", "all dead", "several"],
}


def joined(mask):
    if not isinstance(mask, tuple):
        return mask
    whole = np.ones((), bool)
    for part in mask:
        whole = whole & part
    return whole


@pytest.mark.parametrize("attend", [dense, small_blocks])
@pytest.mark.parametrize(
    ("mask", "causal"), [(mask, causal) for causal, masks in BY_ORDER.items() for mask in masks]
)
def test_values_and_gradients_are_those_of_the_naive_loop(attend, mask, causal):
    arrays, mask = inputs(), MASKS[mask]
    found = context_and_gradients(
        lambda *arguments: attend(*arguments, mask=mask, is_causal=causal, scale=0.7),
        *arrays,
        compiled=True,
    )
    probabilities = assert_naive(found, arrays, joined(mask), scale=0.7, causal=causal)
    assert not found[0][probabilities.sum(-1) == 0].any()


@pytest.mark.parametrize("attend", [dense, small_blocks])
@pytest.mark.parametrize(
    ("target", "source", "kv_heads"), [(13, 11, 6), (1, 7, 2), (5, 1, 1), (3, 17, 2)]
)
def test_lengths_and_groups(attend, target, source, kv_heads):
    arrays = inputs(target, source, kv_heads)
    mask = random_mask(BATCH, HEADS, target, source)
    found = context_and_gradients(
        lambda *arguments: attend(*arguments, mask=mask, is_causal=True), *arrays, compiled=True
    )
    assert_naive(found, arrays, mask, causal=True)


@pytest.mark.parametrize("attend", [dense, small_blocks])
def test_eager_calls_agree(attend):
    def causal(*arguments):
        return attend(*arguments, mask=MASKS["dead rows"], is_causal=True)

    eager, compiled = (
        context_and_gradients(causal, *inputs(), compiled=compiled) for compiled in (False, True)
    )
    assert_close(eager, compiled, atol=2e-6)


@IMPLEMENTATIONS
def test_a_number_worked_out_by_hand(attend):
    # Scores log 1 and log 3 give weights 1/4 and 3/4: 1/4 * 8 + 3/4 * 16 = 14. A third key, masked,
    # would change it.
    query = np.array([[[[1.0, 0.0]]]], "float32")
    key = np.array([[[[0.0, 5.0], [math.log(3.0), 5.0], [2.0, 5.0]]]], "float32")
    value = np.array([[[[8.0], [16.0], [100.0]]]], "float32")
    mask = np.array([[[[True, True, False]]]])
    tensors = (ops.convert_to_tensor(part) for part in (query, key, value))
    context = ops.convert_to_numpy(attend(*tensors, mask=mask, scale=1.0))
    assert context.item() == pytest.approx(14.0, rel=1e-6)


@IMPLEMENTATIONS
def test_a_single_query_sees_every_key_when_causal(attend):
    query, key, value, _ = (ops.convert_to_tensor(part) for part in inputs(target=1))
    assert_same(attend(query, key, value, is_causal=True), attend(query, key, value))


@IMPLEMENTATIONS
def test_float16_stays_finite_past_its_largest_number(attend):
    query, key, value, upstream = (part.astype("float16") for part in inputs())
    query, key = query * 300, key * 300
    scores = np.einsum("bhtd,bhsd->bhts", query.astype(float), key.repeat(2, 1).astype(float))
    assert scores.max() * KEY_DIM**-0.5 > 65504
    context, *grads = context_and_gradients(attend, query, key, value, upstream, compiled=True)
    assert context.dtype == np.float16
    expected, _ = naive_attention(query, key, value)
    assert_close(context, expected, atol=2e-3)
    assert all(np.isfinite(grad).all() for grad in grads)


@IMPLEMENTATIONS
def test_bfloat16_scores_are_not_rounded(attend):
    # 256 + 0.5 and 256 are the same bfloat16 number, but not the same score.
    query = np.array([[[[16.0, 1.0]]]], "float32")
    key = np.array([[[[16.0, 0.5], [16.0, 0.0]]]], "float32")
    value = np.array([[[[1.0], [0.0]]]], "float32")
    tensors = (ops.cast(part, "bfloat16") for part in (query, key, value))
    context = attend(*tensors, scale=1.0)
    assert keras.backend.standardize_dtype(context.dtype) == "bfloat16"
    wanted = 1 / (1 + math.exp(-0.5))
    assert float(ops.cast(context, "float32")[0, 0, 0, 0]) == pytest.approx(wanted, abs=4e-3)


@pytest.mark.tensorflow
@IMPLEMENTATIONS
def test_float64_computes_in_float64(attend):
    arrays, mask = [part.astype("float64") for part in inputs()], MASKS["dead rows"]
    found = context_and_gradients(
        lambda *arguments: attend(*arguments, mask=mask), *arrays, compiled=True
    )
    assert_naive(found, arrays, mask, atol=1e-14, gradient_atol=1e-13)


def test_bias_is_added_and_learned_from():
    query, key, value, upstream = inputs()
    bias = normal(1, HEADS, TARGET, SOURCE, seed=9)
    context = dot_product_attention(query, key, value, bias=bias, mask=MASKS["keys"])
    expected, _ = naive_attention(query, key, value, MASKS["keys"], bias)
    assert_close(context, expected, atol=3e-6)

    def of_bias(bias, key, value):
        return dot_product_attention(query, key, value, bias=bias)

    grad = context_and_gradients(of_bias, bias, key, value, upstream)[1]
    step = np.zeros_like(bias)
    step[0, 4, 2, 3] = 1e-4
    change = sum(
        sign * (upstream * naive_attention(query, key, value, bias=bias + sign * step)[0]).sum()
        for sign in (1.0, -1.0)
    )
    assert grad[0, 4, 2, 3] == pytest.approx(change / 2e-4, abs=1e-3)


def test_scores_are_the_probabilities_before_dropout():
    query, key, value, _ = inputs()
    mask = MASKS["dead rows"]
    _, expected = naive_attention(query, key, value, mask)
    for dropout in (0.0, 0.5):
        options = {"dropout": dropout, "seed": keras.random.SeedGenerator(3)}
        context, scores = dot_product_attention(
            query, key, value, mask=mask, return_scores=True, **options
        )
        assert_close(scores, expected, atol=1e-6)
        dead = expected.sum(-1) == 0
        assert not ops.convert_to_numpy(scores)[dead].any()
        assert not ops.convert_to_numpy(context)[dead].any()
    half = (ops.cast(part, "float16") for part in (query, key, value))
    _, scores = dot_product_attention(*half, return_scores=True)
    assert keras.backend.standardize_dtype(scores.dtype) == "float16"


@pytest.mark.parametrize(
    ("shape", "options", "chosen"),
    [
        # 12 bytes a score in 1/16 of 8 GiB: 42 heads of 2²⁰ scores fit, and 43 do not.
        ((1, 43, 1024, 2), {}, True),
        ((1, 42, 1024, 2), {}, False),
        ((43, 1, 1024, 2), {}, True),
        ((64, 16, 1023, 2), {}, False),
        ((1, 43, 1024, 2), {"bias": np.zeros((1, 1, 1, 1), "float32")}, False),
        ((1, 43, 1024, 2), {"return_scores": True}, False),
        ((None, 2, 1024, 2), {}, True),
        ((None, 1, 1024, 2), {}, False),
        ((4, 16, None, 2), {}, False),
    ],
)
def test_auto_is_chunked_where_scores_are_many(monkeypatch, shape, options, chosen):
    monkeypatch.setattr(attention, "memory_bytes", lambda: 2**33)
    monkeypatch.setattr(attention, "chunked_attention", lambda *_: "chunked")
    monkeypatch.setattr(attention, "_scaled_scores", lambda *_: None)
    monkeypatch.setattr(attention, "attend_by_scores", lambda *_, **__: "dense")
    monkeypatch.setattr(attention.ops, "convert_to_tensor", lambda tensor: tensor)
    tensor = keras.KerasTensor(shape)
    found = dot_product_attention(tensor, tensor, tensor, **options)
    assert found == ("chunked" if chosen else "dense")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": normal(2, 3, 5)}, r"\(batch, heads, length, width\).*query_shape=\(2, 3, 5\)"),
        ({"query": normal(2, 6, 3, 8)}, r"same width.*query_shape=\(2, 6, 3, 8\)"),
        ({"value": normal(2, 3, 8, 7)}, r"same batch, heads and length.*\(2, 3, 8, 7\)"),
        ({"query": normal(5, 6, 3, 5)}, r"same batch.*query_shape=\(5, 6, 3, 5\)"),
        ({"query": normal(2, 7, 3, 5)}, r"must divide the heads.*heads=7, kv_heads=3"),
        (
            {"mask": np.ones((2, 1, 1, 12), bool)},
            r"`mask` must broadcast.*mask_shape=\(2, 1, 1, 12\), scores_shape=\(2, 6, 11, 13\)",
        ),
        ({"mask": np.ones((2, 13), bool)}, r"`mask` must broadcast.*mask_shape=\(2, 13\)"),
        ({"bias": normal(1, 5, 1, 1)}, r"`bias` must broadcast.*bias_shape=\(1, 5, 1, 1\)"),
        ({"implementation": "chunk"}, r"`implementation`.*Did you mean 'chunked'\?.*'chunk'"),
        ({"dropout": 1.0}, r"`dropout` must be a number in \[0, 1\).*dropout=1.0"),
        ({"dropout": 0.1}, r"`dropout` needs a `seed`.*dropout=0.1, seed=None"),
        (
            {"implementation": "chunked", "return_scores": True},
            r"never holds the scores.*return_scores=True",
        ),
        (
            {"implementation": "chunked", "bias": normal(1, 6, 1, 1)},
            r"takes no `bias`.*bias_shape=\(1, 6, 1, 1\)",
        ),
    ],
)
def test_errors_name_the_values(changes, message):
    query, key, value, _ = inputs()
    arguments = {"query": query, "key": key, "value": value, **changes}
    refused(message, dot_product_attention, **arguments)
