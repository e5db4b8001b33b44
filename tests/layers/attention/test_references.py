"""Where theory says that a mechanism is dense attention, it is; loops over positions judge it."""

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.ops.block_sparse_attention import random_blocks
from tests.harness import numbers, numpy
from tests.layers.judges import (
    back_to_features,
    called,
    heads_by_role,
    naive_attention,
    softmax_by_rows,
)
from tests.layers.mechanisms import MECHANISMS
from tests.refusals import refused

X = numbers(1, 2, 13, 6)
REAL = np.arange(13)[None, :] < np.array([[9], [13]])
PAIRS = REAL[:, None, :, None] & REAL[:, None, None, :]
MASKS = {False: PAIRS, True: PAIRS & np.tril(np.ones((13, 13), bool))}  # by whether it is causal


def check(layer, expected, tolerance=5e-6, **options):
    found = numpy(layer(X, X, query_mask=REAL, value_mask=REAL, **options))
    np.testing.assert_allclose(found, expected, atol=tolerance)


def dense(layer, is_causal=False):
    return naive_attention(layer, X, X, mask=MASKS[is_causal])[0]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [13, 14, 40])
def test_a_window_as_long_as_the_sequence(window, is_causal):
    layer = called(layers.LocalAttention(2, 3, window), X, X)
    check(layer, dense(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize(("radius", "global_length"), [(12, 1), (1, 13), (1, 40), (11, 4)])
def test_all_near_or_all_global(radius, global_length):
    layer = called(layers.GlobalLocalAttention(2, 3, radius, global_length), X, X)
    layer.label_keys.assign(np.zeros(layer.label_keys.shape))
    check(layer, dense(layer))


@pytest.mark.parametrize(
    "positions",
    [layers.RelativePositionBias(2), layers.TransformerXLPositions(2, 3)],
    ids=["relative", "Transformer-XL"],
)
def test_positions_that_have_learned_nothing(positions):
    layer = called(layers.MultiHeadAttention(2, 3, relative_positions=positions), X, X)
    for weight in layer.relative_positions.weights:
        weight.assign(np.zeros(weight.shape))
    check(layer, dense(layer))


@pytest.mark.parametrize("is_causal", [False, True])
def test_memories_before_the_first_segment(is_causal):
    for layer in (
        layers.RecurrentMemoryAttention(2, 3, 4),
        layers.CompressiveMemoryAttention(2, 3, 4, 2),
    ):
        called(layer, X, X)
        for weight in layer.relative_positions.weights:
            weight.assign(np.zeros(weight.shape))
        masks = {"query_mask": REAL, "value_mask": REAL, "use_causal_mask": is_causal}
        found, _ = layer(X, X, memory=layer.initial_memory(2, 6), **masks)
        np.testing.assert_allclose(numpy(found), dense(layer, is_causal), atol=5e-6)


def of_others(layer, is_causal):
    """Queries that are keys too, of length 1; a position attends to itself only in need."""
    heads = heads_by_role(layer, X)
    keys = heads["query"] / np.linalg.norm(heads["query"], axis=-1, keepdims=True)
    scores = np.einsum("bhid,bhjd->bhij", heads["query"], keys) - 1e5 * np.eye(13)
    return back_to_features(layer, softmax_by_rows(scores, MASKS[is_causal]) @ heads["value"])


@pytest.mark.parametrize("is_causal", [False, True])
def test_hashing_into_one_bucket(is_causal):
    layer = called(layers.LSHAttention(2, 3, num_buckets=2, num_hashes=2, chunk_length=13), X, X)
    layer.rotations.assign(np.zeros(layer.rotations.shape))
    check(layer, of_others(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
def test_hashing_often_enough(is_causal):
    """Every pair meets in some round, and in none do all of them."""
    layer = called(layers.LSHAttention(2, 3, num_buckets=2, num_hashes=16, chunk_length=13), X, X)
    rotations = np.random.default_rng(9).normal(size=layer.rotations.shape)
    layer.rotations.assign(rotations)
    layer.projections[0].bias.assign(np.full(layer.projections[0].bias.shape, 0.7))
    query = heads_by_role(layer, X)["query"]
    sides = np.einsum("bhld,hdr->bhrl", query, rotations[..., 0]) > 0
    meet = sides[..., :, None] == sides[..., None, :]  # (batch, heads, rounds, length, length)
    assert meet.any(axis=2).all()
    assert not meet.all(axis=(-1, -2)).all(axis=(0, 1)).any()
    check(layer, of_others(layer, is_causal), use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
def test_linear_attention(is_causal):
    """Equation 4 of the paper: weights φ(q)ᵀ φ(k) by their sum, φ(x) = elu(x) + 1."""
    layer = called(layers.LinearAttention(2, 3), X, X)
    heads = heads_by_role(layer, X)
    context = np.zeros(heads["value"].shape)
    features = {
        role: np.where(heads[role] > 0, heads[role] + 1, np.exp(np.minimum(heads[role], 0)))
        for role in ("query", "key")
    }
    for b, h, i in np.ndindex(2, 2, 13):
        seen = np.flatnonzero(MASKS[is_causal][b, 0, i])
        weights = np.array([features["query"][b, h, i] @ features["key"][b, h, j] for j in seen])
        if len(seen):
            context[b, h, i] = weights / weights.sum() @ heads["value"][b, h, seen]
    check(layer, back_to_features(layer, context), use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("stride", [1, 4, 13, 20])
def test_strides(stride, is_causal):
    """Section 4.3 of the paper: i - j below the stride or a multiple of it."""
    layer = called(layers.SparseAttention(2, 3, stride), X, X)
    distance = np.abs(np.arange(13)[:, None] - np.arange(13))
    pairs = MASKS[is_causal] & ((distance < stride) | (distance % stride == 0))
    check(layer, naive_attention(layer, X, X, mask=pairs)[0], use_causal_mask=is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("stride", "count"), [(1, 1), (4, 1), (5, 3), (20, 20)])
def test_fixed_summaries(stride, count, is_causal):
    """Section 4.3: rows of positions, and the last ones of each row."""
    layer = called(layers.SparseAttention(2, 3, stride, "fixed", count), X, X)
    i, j = np.arange(13)[:, None], np.arange(13)
    pairs = MASKS[is_causal] & ((i // stride == j // stride) | (j % stride >= stride - count))
    check(layer, naive_attention(layer, X, X, mask=pairs)[0], use_causal_mask=is_causal)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("dilation", [1, 2, [1, 3]])
def test_windows_and_global_positions(dilation, marked):
    """Sections 3.1 and 3.2 of Longformer, pair by pair."""
    layer = called(layers.LongformerAttention(2, 3, 3, 2, dilation), X, X)
    first = np.arange(13) < np.array([[2], [2]])
    is_global = np.arange(13) % 7 == np.array([[3], [5]]) if marked else first
    heads = heads_by_role(layer, X)
    kernels = {p: p.name.removeprefix("global_") for p in layer.global_projections}
    of_global = {}
    for projection in kernels:
        flat = X.astype("float64") @ numpy(projection.kernel) + numpy(projection.bias)
        for number, role in enumerate(projection.heads):
            part = flat[..., 6 * number : 6 * number + 6].reshape(2, 13, 2, 3)
            of_global[role] = np.swapaxes(part, 1, 2)
    context = np.zeros(heads["value"].shape)
    for b, h, i in np.ndindex(2, 2, 13):
        step = dilation if isinstance(dilation, int) else dilation[h]
        distance = np.abs(np.arange(13) - i)
        near = (distance % step == 0) & (distance // step < 3)
        own = of_global if is_global[b, i] else heads
        seen = REAL[b] & (True if is_global[b, i] else near | is_global[b])
        scores = own["query"][b, h, i] @ own["key"][b, h].T / np.sqrt(3)
        if REAL[b, i]:
            context[b, h, i] = softmax_by_rows(scores[None], seen)[0] @ own["value"][b, h]
    options = {"global_mask": is_global} if marked else {}
    check(layer, back_to_features(layer, context), **options)


def test_too_many_global_positions():
    layer = called(layers.LongformerAttention(2, 3, 3, global_length=2), X, X)
    refused("not mark more than .*=2. Received: marked=13", layer, X, X, global_mask=REAL)


def blocks_seen(length, size, random):
    """Section 2 of BigBird: which blocks see which, as counts."""
    last = -(-length // size) - 1
    seen = np.zeros((13 // size + 1, 13 // size + 1), int)
    for i in range(last + 1):
        seen[i, sorted({0, last, *range(max(i - 1, 0), min(i + 1, last) + 1), *random[i]})] = 1
    seen[[0, last], : last + 1] = 1
    return seen


@pytest.mark.parametrize("size", [1, 2, 4, 13])
@pytest.mark.parametrize("num_random_blocks", [0, 2])
def test_blocks_near_at_the_ends_and_random_ones(size, num_random_blocks):
    arguments = {"num_random_blocks": num_random_blocks, "seed": 4}
    layer = called(layers.BigBirdAttention(2, 3, size, **arguments), X, X)
    pairs = np.zeros((2, 2, 13, 13), bool)
    for b, length in enumerate(REAL.sum(axis=1)):
        at, last = np.arange(-(-13 // size)), np.array([[[-(-length // size) - 1]]])
        chosen = [[[[]] * len(at)]] * 2
        if num_random_blocks:
            found, is_new = random_blocks(at, last.repeat(2, axis=1), layer.random_places)
            found, is_new = numpy(found)[0], numpy(is_new)[0]
            chosen = [[found[h, i][is_new[h, i]] for i in at] for h in range(2)]
            for h, i in np.ndindex(2, len(at)):
                if 0 < i < last[0, 0, 0]:
                    assert set(chosen[h][i]) <= set(range(1, last[0, 0, 0])) - {i - 1, i, i + 1}
        for h in range(2):
            of_head = chosen[h] if num_random_blocks else [[]] * len(at)
            seen = blocks_seen(length, size, of_head)
            pairs[b, h] = np.kron(seen, np.ones((size, size), int))[:13, :13]
    check(layer, naive_attention(layer, X, X, mask=PAIRS & pairs)[0])


@pytest.mark.parametrize("last", [2, 3, 4, 5, 11])
def test_each_block_that_is_left_may_be_chosen(last):
    places, at = np.random.default_rng(0).random((2, 1, 800)).astype("float32"), np.arange(last + 1)
    found, _ = map(numpy, random_blocks(at, np.array([[[last]]]), places))
    for i in range(1, last):
        left = set(range(1, last)) - {i - 1, i, i + 1}
        assert not left or set(found[0, 0, i].tolist()) == left


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_chooses_the_same_random_blocks(dtype):
    wide, half = (
        called(layers.BigBirdAttention(2, 3, 2, seed=4, dtype=name), X, X)
        for name in ("float32", dtype)
    )
    np.testing.assert_array_equal(numpy(wide.random_places), numpy(half.random_places))


def test_the_first_block_repeated():
    """As often as there are random blocks, and once more, for all but the ends."""
    layer = called(layers.BigBirdAttention(2, 3, 2, num_random_blocks=3, repeat_first=True), X, X)
    heads, context = heads_by_role(layer, X), np.zeros((2, 2, 13, 3))
    for b, length in enumerate(REAL.sum(axis=1)):
        counts = np.kron(blocks_seen(length, 2, [[]] * 7), np.ones((2, 2), int))[:13, :13]
        last = (length - 1) // 2 * 2
        counts[2:last, :2] *= 4
        for h, i in np.ndindex(2, length):
            weights = np.exp(heads["query"][b, h, i] @ heads["key"][b, h].T / np.sqrt(3))
            weights *= counts[i] * REAL[b]
            context[b, h, i] = weights / weights.sum() @ heads["value"][b, h]
    check(layer, back_to_features(layer, context))


@pytest.mark.parametrize("repeat_first", [False, True])
def test_short_sequences_attend_to_everything(repeat_first):
    """Row by row, by the last position that is real."""
    arguments = {"block_length": 1, "repeat_first": repeat_first, "seed": 4}
    layer = called(layers.BigBirdAttention(2, 3, full_length=9, **arguments), X, X)
    sparse = called(layers.BigBirdAttention(2, 3, **arguments), X, X)  # with the same weights
    expected = numpy(sparse(X, X, query_mask=REAL, value_mask=REAL))
    assert np.abs(expected - dense(layer))[:, :9].max(axis=(1, 2)).min() > 1e-4
    expected[0] = dense(layer)[0]
    check(layer, expected)
    short = X[:, :9]  # where all sequences are known to be short
    expected = naive_attention(layer, short, short)[0]
    np.testing.assert_allclose(numpy(layer(short, short)), expected, atol=5e-6)
    np.testing.assert_allclose(numpy(layer(X, X)), numpy(sparse(X, X)), atol=5e-6)


@pytest.mark.parametrize("share_key_value", [False, True])
@pytest.mark.parametrize("share_heads", [False, True])
def test_mixtures_of_positions(share_heads, share_key_value):
    """Equation 7 of Linformer, head by head; positions that are hidden have no part in it."""
    sharing = {"share_heads": share_heads, "share_key_value": share_key_value}
    layer = called(layers.LinformerAttention(2, 3, 17, 4, **sharing), X, X)
    heads, mixtures = heads_by_role(layer, X), [numpy(weight) for weight in layer.mixtures]
    context = np.zeros(heads["value"].shape)
    for b, h in np.ndindex(2, 2):
        real = np.flatnonzero(REAL[b])
        mix_keys, mix_values = (
            mixtures[number][0 if share_heads else h][real].T for number in (0, -1)
        )
        scores = heads["query"][b, h] @ (mix_keys @ heads["key"][b, h][real]).T / np.sqrt(3)
        weights = softmax_by_rows(scores, True)
        context[b, h, real] = (weights @ mix_values @ heads["value"][b, h][real])[real]
    check(layer, back_to_features(layer, context))


def test_landmarks():
    """Equation 13 of Nyströmformer with NumPy's pseudoinverse, row by row."""
    layer = called(layers.NystromAttention(2, 3, 4, iterations=25, convolution_width=3), X, X)
    heads, kernel = heads_by_role(layer, X), numpy(layer.convolution)
    context = np.zeros(heads["value"].shape)
    for b, h in np.ndindex(2, 2):
        real = np.flatnonzero(REAL[b])
        query, key, value = (heads[role][b, h][real] for role in ("query", "key", "value"))
        segments = np.arange(len(real)) * 4 // len(real)
        queries, keys = (
            np.stack([x[segments == number].mean(axis=0) for number in range(4)])
            for x in (query, key)
        )
        first, middle, last = (
            softmax_by_rows(one @ other.T / np.sqrt(3), True)
            for one, other in ((query, keys), (queries, keys), (queries, key))
        )
        context[b, h, real] = first @ np.linalg.pinv(middle) @ last @ value
        before_and_after = np.pad(value, ((1, 1), (0, 0)))
        for place in range(3):
            part = before_and_after[place : place + len(real)]
            context[b, h, real] += kernel[place, h] * part
    check(layer, back_to_features(layer, context), tolerance=2e-4)


def test_as_many_landmarks_as_positions():
    layer = called(layers.NystromAttention(2, 3, 13, iterations=25), X, X)
    check(layer, dense(layer), tolerance=1e-3)


def test_without_landmarks():
    layer = called(layers.NystromAttention(2, 3, None), X, X)
    check(layer, dense(layer))


def test_blocks_that_are_sorted():
    """Section 3 of Sparse Sinkhorn Attention, block by block."""
    layer = called(layers.SinkhornAttention(2, 3, 4, max_length=19, iterations=7), X, X)
    heads = heads_by_role(layer, X)
    context = np.zeros(heads["value"].shape)
    weights = [numpy(x) for part in (layer.sort_hidden, layer.sort_output) for x in part.weights]
    for b in range(2):
        count, length = -(-REAL[b].sum() // 4), REAL[b].sum()
        places = [np.arange(4 * block, min(4 * block + 4, length)) for block in range(count)]
        means = np.stack([X[b, place].mean(axis=0) for place in places])
        logits = np.maximum(means @ weights[0] + weights[1], 0) @ weights[2]
        logits = logits.reshape(count, 2, 5)[:, :, :count]
        for h in range(2):
            order = np.exp(logits[:, h] / 0.75)
            for _ in range(7):
                order = order / order.sum(axis=1, keepdims=True)
                order = order / order.sum(axis=0, keepdims=True)
            query, key, value = (heads[role][b, h] for role in ("query", "key", "value"))
            for block, place in enumerate(places):
                keys, values = np.zeros((4, 3)), np.zeros((4, 3))
                for other, theirs in enumerate(places):
                    keys[: len(theirs)] += order[block, other] * key[theirs]
                    values[: len(theirs)] += order[block, other] * value[theirs]
                keys, values = (
                    np.concatenate([own[place], mixed])
                    for own, mixed in ((key, keys), (value, values))
                )
                scores = query[place] @ keys.T / np.sqrt(3)
                context[b, h, place] = softmax_by_rows(scores, True) @ values
    check(layer, back_to_features(layer, context))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("use_gate", [False, True])
def test_gated_linear_attention(is_causal, use_gate):
    """Equation 3 of the paper, pair by pair: products of the decays between a key and a query."""
    layer = called(layers.GatedLinearAttention(2, 3, 5, use_gate=use_gate), X, X)
    heads = heads_by_role(layer, X)
    narrow, wide = numpy(layer.decay_narrow.kernel), numpy(layer.decay_wide.kernel)
    logits = X.astype("float64") @ narrow @ wide + numpy(layer.decay_wide.bias)
    decays = np.where(REAL[..., None], (1 / (1 + np.exp(-logits))) ** (1 / 16), 1)
    decays = decays.reshape(2, 13, 2, 3)
    context = np.zeros(heads["value"].shape)
    for b, h, i in np.ndindex(2, 2, 13):
        for j in np.flatnonzero(MASKS[is_causal][b, 0, i]):
            between = slice(j + 1, i + 1) if j <= i else slice(i, j)
            weight = heads["query"][b, h, i] * decays[b, between, h].prod(axis=0) / np.sqrt(3)
            context[b, h, i] += weight @ heads["key"][b, h, j] * heads["value"][b, h, j]
    check(layer, normalized(layer, context, heads.get("gate")), use_causal_mask=is_causal)


def test_what_gated_linear_attention_keeps_at_first():
    """Each head has features that soon forget half, and others that keep it for thousands."""
    layer = layers.GatedLinearAttention(2, 4)
    layer.build((None, None, 6))
    kept = (1 / (1 + np.exp(-numpy(layer.decay_wide.bias)))) ** (1 / 16)
    halves = np.log(0.5) / np.log(kept.reshape(2, 4))
    np.testing.assert_allclose(halves[:, [0, -1]], [[16, 4480]] * 2, rtol=1e-3)
    assert (np.diff(halves) > 0).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_delta_rule(is_causal):
    """Section 2.2 of the paper, position by position; in both directions if not causal."""
    layer = called(layers.DeltaRuleAttention(2, 3), X, X)
    heads = heads_by_role(layer, X)
    rates = 1 / (1 + np.exp(-X.astype("float64") @ numpy(layer.rate.kernel)))
    query, key = (heads[role] / (1 + np.exp(-heads[role])) for role in ("query", "key"))
    query, key = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (query, key))
    context = np.zeros(heads["value"].shape)
    for b, h in np.ndindex(2, 2):
        real = np.flatnonzero(REAL[b])
        for order in (real,) if is_causal else (real, real[::-1]):
            state = np.zeros((3, 3))
            for i in order:
                error = heads["value"][b, h, i] - key[b, h, i] @ state
                state += rates[b, i, h] * np.outer(key[b, h, i], error)
                context[b, h, i] += query[b, h, i] @ state
    check(layer, normalized(layer, context), use_causal_mask=is_causal)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("is_causal", [False, True])
def test_disentangled_attention(is_causal, shared):
    """Equations 3 and 4 of the paper, pair by pair, with a vector for each distance."""
    options = {"share_projections": shared, "epsilon": None}
    layer = called(layers.DisentangledAttention(2, 3, None, 4, **options), X, X)
    heads = heads_by_role(layer, X)
    vectors = numpy(layer.relative_positions.embeddings).astype("float64")
    distances = dict(zip(("query", "key"), [None] * 2, strict=True))
    kernels = layer.projections if shared else [layer.distance_projection]
    for projection in kernels:
        kernel, bias = numpy(projection.kernel), numpy(projection.bias)
        found = (vectors @ kernel + bias).reshape(8, -1, 2, 3)
        distances |= {role: found[:, n] for n, role in enumerate(projection.heads) if n < 2}
    context = np.zeros(heads["value"].shape)
    for b, h, i in np.ndindex(2, 2, 13):
        seen = np.flatnonzero(MASKS[is_causal][b, 0, i])
        if not len(seen):
            continue
        query, keys = heads["query"][b, h, i], heads["key"][b, h, seen]
        row = np.clip(i - seen + 4, 0, 7)
        scores = keys @ query + distances["key"][row, h] @ query
        scores += (keys * distances["query"][row, h]).sum(axis=-1)
        weights = np.exp(scores / np.sqrt(9))
        context[b, h, i] = weights / weights.sum() @ heads["value"][b, h, seen]
    check(layer, back_to_features(layer, context), use_causal_mask=is_causal)


def normalized(layer, context, gate=None):
    """Outputs of contexts that are divided by the root of their mean square, and gated."""
    squares = np.mean(context**2, axis=-1, keepdims=True)
    context = context / np.sqrt(squares + 1e-5) * numpy(layer.norm_scale)
    if gate is not None:
        context *= gate / (1 + np.exp(-gate))
    return back_to_features(layer, context)


def turned(x, position):
    """Features (a, b) as complex numbers a + bi, turned by the position at two speeds."""
    pairs = (x[:2] + 1j * x[2:]) * np.exp(1j * position / 10_000 ** np.array([0, 0.5]))
    return np.concatenate([pairs.real, pairs.imag])


@pytest.mark.parametrize("is_causal", [False, True])
def test_linear_attention_turned_by_positions(is_causal):
    """Equation 19 of RoFormer: turned above the line, not below it."""
    layer = called(layers.LinearAttention(2, 4, relative_positions=layers.RotaryEmbedding()), X, X)
    heads = heads_by_role(layer, X)
    context = np.zeros(heads["value"].shape)
    query, key = (
        np.where(heads[role] > 0, heads[role] + 1, np.exp(np.minimum(heads[role], 0)))
        for role in ("query", "key")
    )
    for b, h, i in np.ndindex(2, 2, 13):
        seen = np.flatnonzero(MASKS[is_causal][b, 0, i])
        for j in seen:
            weight = turned(query[b, h, i], i) @ turned(key[b, h, j], j)
            divisor = query[b, h, i] @ key[b, h, seen].sum(axis=0)
            context[b, h, i] += weight / divisor * heads["value"][b, h, j]
    check(layer, back_to_features(layer, context), use_causal_mask=is_causal)


WITH_SCORES = {name: m for name, m in MECHANISMS.items() if m.scores and m.averages}


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_behind_a_convolution(is_causal, size):
    """The sums of neighbors, written out; at the start and the end, and beside padding, of less."""
    layer = called(layers.ConvolvedAttention(layers.LinearAttention(2, 3), size), X, X)
    before = size - 1 if is_causal else size // 2
    kernel, mixed = numpy(layer.kernel), np.zeros_like(X)
    for b, i in np.ndindex(X.shape[:2]):
        for tap in range(size):
            j = i - before + tap
            if j == i or (0 <= j < X.shape[1] and REAL[b, j]):
                mixed[b, i] += kernel[tap] * X[b, j]
    masks = {"value_mask": REAL, "use_causal_mask": is_causal}
    expected = numpy(layer.attention(mixed, mixed, **masks))
    np.testing.assert_allclose(numpy(layer(X, X, **masks)), expected, atol=5e-6)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", WITH_SCORES)
def test_outputs_are_averages_by_the_scores(name, is_causal):
    layer = called(WITH_SCORES[name].make(), X, X)
    masks = {"query_mask": REAL, "value_mask": REAL, "use_causal_mask": is_causal}
    output, scores = map(numpy, layer(X, X, return_attention_scores=True, **masks))
    scores = scores if scores.ndim == 4 else scores[:, None]
    allowed = np.broadcast_to(MASKS[is_causal], scores.shape)
    assert not scores[~allowed].any()
    np.testing.assert_allclose(scores.sum(-1), allowed.any(-1), atol=2e-6)
    if hasattr(layer, "output_projection"):
        expected = back_to_features(layer, scores @ heads_by_role(layer, X)["value"])
    else:
        expected = (scores @ X[:, None])[:, 0]
    np.testing.assert_allclose(output, expected, atol=5e-6)


def test_no_masks_of_pairs_behind_a_convolution():
    layer = layers.ConvolvedAttention(layers.MultiHeadAttention(2, 3))
    message = "Behind a short convolution an `attention_mask` cannot differ between queries"
    refused(message, layer, X, X, attention_mask=np.ones((2, 13, 13), bool))
