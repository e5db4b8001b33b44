"""AlibiBias and RelativePositionBias: the papers' numbers, and their place in attention."""

import numpy as np
import pytest

from keras_attn.layers import AlibiBias, MultiHeadAttention, RelativePositionBias
from keras_attn.layers.positions.distance_biases import alibi_slopes
from keras_attn.ops.positions import relative_position_bucket
from keras_attn.validation import UserError
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused


def test_slopes_of_the_paper():
    # "For our models with 8 heads, the slopes are 1/2, 1/4, …, 1/256; for 16 heads those of 8 and
    # their geometric means with the ones before, 1/2^0.5, 1/2^1.5, …"
    assert alibi_slopes(8) == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(16) == [2.0 ** (-n / 2) for n in range(1, 17)]
    assert alibi_slopes(1) == [2.0**-8]


def test_slopes_of_other_numbers_of_heads():
    # 12 heads, as the authors' code has them: those of 8, and every second one of 16.
    assert alibi_slopes(12) == alibi_slopes(8) + alibi_slopes(16)[::2][:4]


def test_alibi_by_hand():
    expected = -np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    found = numpy(AlibiBias(2)(np.arange(3)[None]))  # slopes 1/16 and 1/256
    np.testing.assert_array_equal(found[0], [expected / 16, expected / 256])


def authors_bucket(distance, num_buckets, max_distance, bidirectional):
    """As T5's code computes it, in float32."""
    bucket, n = 0, -distance
    if bidirectional:
        num_buckets //= 2
        bucket += num_buckets * (n < 0)
        n = abs(n)
    else:
        n = max(n, 0)
    exact = num_buckets // 2
    if n < exact:
        return bucket + n
    ratio = np.log(np.float32(n) / np.float32(exact)) / np.float32(np.log(max_distance / exact))
    return bucket + min(exact + int(ratio * np.float32(num_buckets - exact)), num_buckets - 1)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (32, 20), (12, 77)])
def test_buckets_of_the_authors(bidirectional, num_buckets, max_distance):
    distances = np.arange(-300, 301, dtype="int32")
    sizes = (num_buckets, max_distance, bidirectional)
    found = numpy(relative_position_bucket(distances, *sizes))
    np.testing.assert_array_equal(found, [authors_bucket(int(d), *sizes) for d in distances])


def test_buckets_by_hand():
    # 32 buckets, 16 a side: 8 exact ones, then borders 8 * 16^(n/8): 8, 11.3, 16, 22.6, 32, …
    distances = np.array([0, -1, -7, -8, -11, -12, -15, -16, -22, -23, -127, -128, -5000, 1, 16])
    buckets = numpy(relative_position_bucket(distances.astype("int32")))
    assert buckets.tolist() == [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 15, 15, 15, 17, 26]


def test_each_bucket_has_a_number_for_each_head():
    layer = RelativePositionBias(2, num_buckets=8, max_distance=4)
    positions = np.arange(5)[None]
    layer(positions)
    spread_weights(layer)
    table, found = numpy(layer.embeddings), numpy(layer(positions))
    for head, i, j in np.ndindex(2, 5, 5):
        bucket = authors_bucket(j - i, 8, 4, True)
        assert found[0, head, i, j] == table[bucket, head]


@pytest.mark.parametrize("positions", [AlibiBias(2), RelativePositionBias(2, 8, 5)], ids=type)
def test_attention_adds_them_to_the_scores(positions):
    layer = MultiHeadAttention(2, 3, relative_positions=positions)
    x = numbers(1, 2, 7, 6)
    layer(x, x)
    spread_weights(layer)
    plain = MultiHeadAttention(2, 3)
    plain(x, x)
    plain.set_weights(_without(layer))
    scores = numpy(layer(x, x, return_attention_scores=True)[1])
    bias = numpy(layer.relative_positions(np.arange(7)[None]))
    unbiased = numpy(plain(x, x, return_attention_scores=True)[1])
    expected = unbiased * np.exp(bias)
    np.testing.assert_allclose(scores, expected / expected.sum(-1, keepdims=True), atol=1e-5)


def _without(layer):
    skipped = {id(weight) for weight in layer.relative_positions.weights}
    return [numpy(weight) for weight in layer.weights if id(weight) not in skipped]


def test_bfloat16_tells_late_distances_apart():
    layer = AlibiBias(8, dtype="mixed_bfloat16")
    bias = numpy(layer.bias(None, np.array([1000], "int32"), np.arange(1001, dtype="int32")))
    assert str(bias.dtype) == "float32"
    assert len(np.unique(bias[0, 7, 0])) == 1001


def test_mistakes_are_told():
    with pytest.raises(UserError, match="Received: relative_positions='AlibiBias'"):
        MultiHeadAttention(2, 3, flash_attention=True, relative_positions=AlibiBias(2))
    with pytest.raises(UserError, match="Received: relative_positions_num_heads=4, num_heads=2"):
        MultiHeadAttention(2, 3, relative_positions=AlibiBias(4))
    refused("`num_buckets` must be even", RelativePositionBias, 2, num_buckets=7)
    with pytest.raises(UserError, match="beyond these. Received: num_buckets=32, max_distance=8"):
        RelativePositionBias(2, max_distance=8)
    with pytest.raises(UserError, match="`relative_positions` must be a Rotary.*='str'"):
        MultiHeadAttention(2, 3, relative_positions="alibi")
