import numpy as np
import pytest

from keras_attn.data.shapes import choose_shapes


def cost(lengths, batch_tokens):
    """Padded tokens of one bucket, batch by batch."""
    source, target = (max(side) for side in zip(*lengths, strict=True))
    size = batch_tokens // max(source, target)
    batches = len(range(0, len(lengths), size))
    return batches * size * (source + target)


def test_divides_where_it_saves():
    # 100 rows of (2, 2) and 7 of (20, 20), 20 tokens a batch: 107 batches of 40 tokens together,
    # ten of 40 and seven of 40 apart.
    lengths = np.array([2] * 50 + [20] * 7 + [2] * 50)
    bucket_of_row, shapes = choose_shapes(np.stack([lengths, lengths], axis=1), 20)
    assert sorted(shapes) == [(2, 2), (20, 20)]
    np.testing.assert_array_equal([shapes[bucket][0] for bucket in bucket_of_row], lengths)


def test_keeps_together_what_fills_one_batch():
    # Four rows fit one batch of 40 tokens; apart they would be 5 * 8 and 4 * 10 tokens.
    lengths = np.array([4, 4, 5, 4])
    bucket_of_row, shapes = choose_shapes(np.stack([lengths, lengths], axis=1), 20)
    assert shapes == [(5, 5)]
    assert bucket_of_row.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("seed", range(23))
def test_first_division_is_the_best(seed):
    generator = np.random.default_rng(seed)
    sources, targets = generator.integers(1, 13, (2, 61))
    rows = list(zip(sources.tolist(), targets.tolist(), strict=True))
    best = cost(rows, 29)
    for side in (0, 1):
        for length in range(1, 12):
            parts = (
                [row for row in rows if row[side] <= length],
                [row for row in rows if row[side] > length],
            )
            if all(parts):
                best = min(best, sum(cost(part, 29) for part in parts))
    bucket_of_row, shapes = choose_shapes(np.stack([sources, targets], axis=1), 29, most=2)
    buckets = [
        [row for row, place in zip(rows, bucket_of_row, strict=True) if place == bucket]
        for bucket in range(len(shapes))
    ]
    assert sum(cost(bucket, 29) for bucket in buckets) == best
    for bucket, shape in zip(buckets, shapes, strict=True):
        assert shape == tuple(max(side) for side in zip(*bucket, strict=True))


def test_number_of_shapes_is_limited():
    generator = np.random.default_rng(1)
    sources, targets = generator.integers(2, 101, (2, 9973))
    for most in (1, 5, 16):
        bucket_of_row, shapes = choose_shapes(np.stack([sources, targets], axis=1), 211, most)
        assert len(shapes) == most
        assert sorted(set(bucket_of_row)) == list(range(most))
