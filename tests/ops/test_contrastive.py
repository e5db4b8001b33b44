"""In-batch contrastive loss, held against loops and numbers worked out by hand."""

import math

import numpy as np
import pytest

from keras_attn.ops.contrastive import contrastive_loss
from tests.harness import numpy


def naive(sources, targets, source_numbers, target_numbers, smoothing=0.0):
    """Loops over the real pairs and what each may be taken for, in float64."""
    rows = [row for row in range(len(sources)) if source_numbers[row]]
    sums = np.zeros(4)
    for own in rows:
        for there in (True, False):
            query, lists = (sources[own], targets) if there else (targets[own], sources)
            logits = {}
            for other in rows:
                # The pair that the cell of the table of all cosines belongs to.
                i, j = (own, other) if there else (other, own)
                alike = (
                    source_numbers[i] == source_numbers[j]
                    or target_numbers[i] == target_numbers[j]
                    or source_numbers[i] == target_numbers[j]
                )
                if other == own or not alike:
                    one = lists[other]
                    cosine = query @ one / np.linalg.norm(query) / np.linalg.norm(one)
                    logits[other] = 20 * cosine
            total = math.log(sum(map(math.exp, logits.values())))
            mean = sum(logits.values()) / len(logits)
            nll = total - logits[own]
            loss = total - (1 - smoothing) * logits[own] - smoothing * mean
            correct = logits[own] >= max(logits.values())
            sums += np.array([loss, nll, 1.0, correct]) / 2
    return sums


def found(*arguments):
    return np.array([numpy(value) for value in contrastive_loss(*arguments)])


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_loops_give_the_same(smoothing):
    generator = np.random.default_rng(3)
    sources, targets = generator.normal(size=(2, 7, 5)).astype("float32")
    # 3 is twice a target, 5 twice a source, 9 a source and another pair's target; two are padding.
    numbers = np.array([[1, 5, 5, 9, 0, 12, 0], [2, 3, 4, 3, 0, 9, 0]], "int32")
    expected = naive(sources, targets, *numbers, smoothing)
    assert expected[2] == 5
    assert 0 < expected[3] < 5
    np.testing.assert_allclose(found(sources, targets, *numbers, smoothing), expected, rtol=1e-5)
    apart = np.where(numbers, np.arange(14).reshape(2, 7) + 1, 0).astype("int32")
    other = naive(sources, targets, *apart, smoothing)
    assert abs(other[0] - expected[0]) > 0.1  # so what is left out counts
    np.testing.assert_allclose(found(sources, targets, *apart, smoothing), other, rtol=1e-5)


def test_a_number_by_hand():
    """Cosines 1 and 0.6 against 0.8: both directions by pencil."""
    sources = np.array([[2.0, 0.0], [0.0, 3.0]], "float32")
    targets = np.array([[5.0, 0.0], [0.8, 0.6]], "float32")
    # Rows: ln(1 + e^(16 - 20)) and ln(1 + e^(0 - 12)); columns: ln(1 + e^(0 - 20)), ln(1 + e^4).
    there = math.log1p(math.exp(-4)) + math.log1p(math.exp(-12))
    back = math.log1p(math.exp(-20)) + math.log1p(math.exp(4))
    numbers = np.array([[1, 2], [3, 4]], "int32")
    expected = [(there + back) / 2] * 2 + [2, 1.5]
    np.testing.assert_allclose(found(sources, targets, *numbers), expected, rtol=1e-5)


def test_an_equal_partner_is_no_mistake():
    """Two pairs of one target: nothing is left to take it for, and the loss is 0."""
    vectors = np.random.default_rng(0).normal(size=(2, 2, 3)).astype("float32")
    loss, nll, pairs, correct = found(*vectors, *np.array([[1, 2], [7, 7]], "int32"))
    assert (loss, nll, pairs, correct) == (0, 0, 2, 2)


def test_zeros_are_finite():
    zeros = np.zeros((3, 4), "float16")
    loss, nll, pairs, _ = found(zeros, zeros, *np.array([[1, 2, 0], [3, 4, 0]], "int32"))
    assert (loss, nll, pairs) == (pytest.approx(2 * math.log(2)), loss, 2)
    assert np.isfinite(found(zeros, zeros, *np.zeros((2, 3), "int32"))).all()
