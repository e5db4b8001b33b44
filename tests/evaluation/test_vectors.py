"""Retrieval and correlation, by hand and against scipy."""

import numpy as np
import pytest
from scipy import stats

from keras_attn.evaluation import RETRIEVAL, partner_ranks, pearson, spearman
from keras_attn.validation import UserError
from tests.refusals import refused


def test_ranks_by_hand():
    queries = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    candidates = np.array([[3.0, 0.0], [0.6, 0.8], [0.0, 0.5], [1.0, 0.9]])
    # Cosines of the first: 1, 0.6, 0, 0.743; of the second: 0, 0.8, 1, 0.669.
    ranks = partner_ranks(queries, candidates, [[1], [1, 3], [3]])
    assert ranks.tolist() == [3, 2, 1]
    assert ranks.dtype == np.int64
    assert RETRIEVAL["mrr"](ranks) == pytest.approx(100 * (1 / 3 + 1 / 2 + 1) / 3)
    assert RETRIEVAL["recall_at_1"](ranks) == pytest.approx(100 / 3)
    assert RETRIEVAL["recall_at_10"](ranks) == 100
    assert RETRIEVAL["recall_at_10"](np.array([10, 11])) == 50
    assert partner_ranks(queries, candidates, [[1], [1], [3]], [[0], [2], []]).tolist() == [2, 1, 1]


def test_equal_vectors_find_nothing():
    assert partner_ranks(np.ones((2, 3)), np.ones((5, 3)), [[0], [1, 2]]).tolist() == [5, 4]


def test_more_queries_than_are_compared_at_once():
    generator = np.random.default_rng(0)
    queries = generator.normal(size=(2100, 3))
    candidates = queries + 0.05 * generator.normal(size=queries.shape)
    ranks = partner_ranks(queries, candidates, [[row] for row in range(2100)])
    unit = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    for row in (0, 1023, 1024, 2099):
        cosines = unit @ queries[row]
        assert ranks[row] == np.count_nonzero(cosines >= cosines[row])


def test_mistakes():
    with pytest.raises(UserError, match="must not be empty. Received: queries=0"):
        partner_ranks(np.ones((0, 2)), np.ones((1, 2)), [])
    with pytest.raises(UserError, match="at least one partner. Received: queries=2, partners=1"):
        partner_ranks(np.ones((2, 2)), np.ones((1, 2)), [[0], []])
    refused(r"lists of equal length .*lengths=\(1, 2\)", pearson, [1], [1, 2])


def test_correlations_are_those_of_scipy():
    generator = np.random.default_rng(1)
    found = generator.integers(0, 9, 53).astype(float)
    expected = found**3 + generator.integers(0, 200, 53)
    assert len(set(found)) < 20  # many are equal
    assert pearson(found, expected) == pytest.approx(stats.pearsonr(found, expected)[0])
    assert spearman(found, expected) == pytest.approx(stats.spearmanr(found, expected)[0])
    assert spearman([1, 2, 3], [5, 50, 7000]) == pytest.approx(1)
    assert pearson([1, 1], [1, 2]) == 0
