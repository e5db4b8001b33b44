"""GlobalLocalAttention: its four pieces pair by pair as the ETC paper writes them."""

import numpy as np
import pytest

from keras_attn.layers import GlobalLocalAttention, GlobalLocalPieces
from keras_attn.validation import UserError
from tests.harness import assert_close, numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused

HEADS, KEY_DIM, RADIUS, FARTHEST, LABELS = 2, 3, 4, 2, 9
X, GLOBAL = numbers(1, 2, 21, 6), numbers(2, 2, 5, 6)
RANDOM = np.random.default_rng(3)
REAL = np.arange(21)[None, :] < np.array([[15], [21]])
GLOBAL_REAL = np.arange(5)[None, :] < np.array([[5], [3]])


def built(global_query=GLOBAL, **arguments):
    arguments = {"max_distance": FARTHEST, "num_labels": LABELS} | arguments
    layer = GlobalLocalAttention(HEADS, KEY_DIM, RADIUS, **arguments)
    layer(X, X, global_query=global_query)
    return spread_weights(layer)


def heads(layer, x):
    """Query, key and value (batch, length, heads, size) of a sequence."""
    kernels, biases = zip(*(map(numpy, p.get_weights()) for p in layer.projections), strict=True)
    kernel, bias = np.concatenate(kernels, axis=1), np.concatenate(biases)
    projected = np.asarray(x, "float64") @ kernel + bias
    return np.split(projected.reshape(*x.shape[:2], 3 * HEADS, KEY_DIM), 3, axis=2)


def distance_label(query, key):
    return min(max(key - query, -FARTHEST), FARTHEST) + FARTHEST


def by_pairs(layer, x, few, real, few_real, labels, may):
    """Both outputs by loops; `labels` and `may` tell of a pair ((stream, i), (stream, j))."""
    of_few = layer.global_attention or layer
    streams = {"l": heads(layer, x), "g": heads(of_few, few)}
    looks = numpy(layer.label_keys).reshape(-1, HEADS, KEY_DIM)
    outputs = []
    for stream, count, projector in (("l", x.shape[1], layer), ("g", few.shape[1], of_few)):
        context = np.zeros((len(x), count, HEADS, KEY_DIM))
        for b, i, h in np.ndindex(len(x), count, HEADS):
            q = streams[stream][0][b, i, h]
            keys = [("l", j) for j in range(x.shape[1]) if real[b, j]]
            keys += [("g", j) for j in range(few.shape[1]) if few_real[b, j]]
            if stream == "l":
                keys = [(s, j) for s, j in keys if s == "g" or abs(i - j) <= RADIUS]
            keys = [key for key in keys if may(b, (stream, i), key)]
            if not keys:
                continue
            scores = []
            for s, j in keys:
                k, label = streams[s][1][b, j, h], labels(b, (stream, i), (s, j))
                scores.append(q @ (k if label is None else k + looks[label, h]))
            weights = np.exp(np.array(scores) / np.sqrt(KEY_DIM))
            weights /= weights.sum()
            context[b, i, h] = sum(
                w * streams[s][2][b, j, h] for w, (s, j) in zip(weights, keys, strict=True)
            )
        back = projector.output_projection
        outputs.append(
            context.reshape(len(x), count, HEADS * KEY_DIM) @ numpy(back.kernel) + numpy(back.bias)
        )
    return outputs


def by_distance(_, query, key):
    return distance_label(query[1], key[1]) if query[0] == key[0] else None


def check(found, expected):
    assert_close(found, expected, atol=5e-6)


def everything(*_):
    return True


@pytest.mark.parametrize("share_projections", [True, False])
def test_two_sequences(share_projections):
    layer = built(share_projections=share_projections)
    found = layer(X, X, value_mask=REAL, global_query=GLOBAL, global_query_mask=GLOBAL_REAL)
    expected = by_pairs(layer, X, GLOBAL, REAL, GLOBAL_REAL, by_distance, everything)
    expected[1][~GLOBAL_REAL] = numpy((layer.global_attention or layer).output_projection.bias)
    check(found, expected)


def test_labels_and_masks_of_pairs():
    layer = built()
    shapes = GlobalLocalPieces((2, 21, 2 * RADIUS + 1), (2, 21, 5), (2, 5, 21), (2, 5, 5))
    labels = GlobalLocalPieces(*(RANDOM.integers(0, LABELS, shape) for shape in shapes))
    may = GlobalLocalPieces(None, *(RANDOM.random(shape) < 0.6 for shape in shapes[1:]))
    names = {("l", "l"): 0, ("l", "g"): 1, ("g", "l"): 2, ("g", "g"): 3}

    def look_up(table, b, query, key):
        column = key[1] - query[1] + RADIUS if (query[0], key[0]) == ("l", "l") else key[1]
        values = table[names[query[0], key[0]]]
        return values is None or values[b, query[1], column]

    found = layer(X, X, global_query=GLOBAL, labels=labels, pair_masks=may)
    all_real, few_real = np.ones_like(REAL), np.ones_like(GLOBAL_REAL)
    expected = by_pairs(
        layer,
        X,
        GLOBAL,
        all_real,
        few_real,
        lambda *pair: look_up(labels, *pair),
        lambda *pair: look_up(may, *pair),
    )
    check(found, expected)


@pytest.mark.parametrize("length", [1, 2, 3, 21])
def test_the_first_positions_are_global(length):
    layer = built(None, global_length=2)
    x, real = X[:, :length], REAL[:, :length]
    found = numpy(layer(x, x, value_mask=real))
    few, rest = x[:, :2], x[:, 2:]
    expected = by_pairs(layer, rest, few, real[:, 2:], real[:, :2], by_distance, everything)
    assert_close(found, np.concatenate(expected[::-1], axis=1), atol=5e-6)


def test_mistakes_are_told():
    refused("`radius` .* Received: radius=0", GlobalLocalAttention, 2, 3, 0)
    with pytest.raises(UserError, match="Received: num_labels=24, max_distance=12"):
        GlobalLocalAttention(2, 3, 4, num_labels=24)
    with pytest.raises(UserError, match="Received: use_causal_mask=True"):
        GlobalLocalAttention(2, 3, 4)(X, X, use_causal_mask=True)
