"""Which tokens span corruption drops: how many, in which spans, all ways equally likely."""

import itertools

import numpy as np
import pytest

from keras_attn.data import SpanNoise
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


def spans_of(mask):
    """Lengths of the runs of dropped tokens, in order."""
    return [len(list(run)) for dropped, run in itertools.groupby(mask) if dropped]


def draws(noise, length, count, seed=1):
    generator = np.random.default_rng(seed)
    return [noise.mask(length, generator) for _ in range(count)]


@pytest.mark.parametrize(
    ("length", "dropped", "spans"),
    [
        *[(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1), (10, 2, 1), (20, 3, 1)],
        *[(30, 4, 1), (40, 6, 2), (100, 15, 5), (568, 85, 28)],  # 4.5 and 85.2, rounded
    ],
)
def test_counts_worked_out_by_hand(length, dropped, spans):
    noise = SpanNoise()
    assert [int(count) for count in noise.counts(length)] == [dropped, spans]
    for mask in draws(noise, length, 20):
        assert (mask.shape, mask.dtype) == ((length,), bool)
        assert (mask.sum(), len(spans_of(mask))) == (dropped, spans)


@pytest.mark.parametrize(
    ("length", "density", "mean", "dropped", "spans"),
    [
        (8, 0.4, 1.5, 3, 2),
        (7, 0.4, 1.0, 3, 3),
        (5, 0.99, 1.0, 4, 2),  # one token is kept, with room before and after it
        (6, 0.5, 9.0, 3, 1),
        (2, 0.01, 3.0, 1, 1),
    ],
)
def test_all_masks_are_equally_likely(length, density, mean, dropped, spans):
    ways = {
        mask
        for mask in itertools.product((False, True), repeat=length)
        if sum(mask) == dropped and len(spans_of(mask)) == spans
    }
    expected = 120
    found = draws(SpanNoise(density, mean), length, expected * len(ways))
    counts = dict.fromkeys(ways, 0)
    for mask in found:
        counts[tuple(mask.tolist())] += 1  # there is no other
    assert len(ways) > 1
    assert list(counts.values()) == pytest.approx([expected] * len(ways), abs=5 * expected**0.5)


def test_shares_over_many_texts():
    noise = SpanNoise()
    lengths = np.random.default_rng(3).integers(40, 500, 300)
    masks = [mask for length in lengths.tolist() for mask in draws(noise, length, 1, length)]
    dropped = sum(mask.sum() for mask in masks)
    spans = [length for mask in masks for length in spans_of(mask)]
    assert dropped / lengths.sum() == pytest.approx(0.15, abs=0.001)
    assert dropped / len(spans) == pytest.approx(3.0, abs=0.05)
    # Of 60 tokens in 20 spans 19 of 59 cuts are at the first place: that many have one token.
    lengths_of_spans = [length for mask in draws(noise, 400, 400) for length in spans_of(mask)]
    assert len(lengths_of_spans) == 20 * 400
    assert np.mean(np.array(lengths_of_spans) == 1) == pytest.approx(19 / 59, abs=0.02)


def test_texts_begin_and_end_with_spans_or_without():
    masks = np.array(draws(SpanNoise(), 12, 2_200))
    # Two tokens of twelve, in one of eleven places.
    expected = np.array([1, *[2] * 10, 1]) * 200
    assert masks.sum(axis=0) == pytest.approx(expected, abs=5 * 400**0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "above 0 and below 1. Received: noise_density=0.0"),
        ((1,), "above 0 and below 1. Received: noise_density=1"),
        ((True,), "above 0 and below 1. Received: noise_density=True"),
        (("0.15",), "above 0 and below 1. Received: noise_density='0.15'"),
        ((0.15, 0.5), "at least 1. Received: mean_noise_span_length=0.5"),
        ((0.15, float("nan")), "at least 1. Received: mean_noise_span_length=nan"),
    ],
)
def test_mistakes(arguments, message):
    refused(message, SpanNoise, *arguments)
