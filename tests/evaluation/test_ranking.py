"""Metrics of ranked passages, by hand and beside scikit-learn's."""

import numpy as np
import pytest

from keras_attn.evaluation import RANKING, ranked_relevances, ranking_metric
from tests.refusals import refused


def values(*queries):
    ranked = [np.array(relevances, float) for relevances in queries]
    return {name: ranking_metric(name, ranked) for name in RANKING}


def test_by_hand():
    first = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]  # relevant ones at ranks 2 and 11
    second = [1, 0]
    found = values(first, second, [0, 0, 0])
    assert found["mrr_at_10"] == pytest.approx(100 * (1 / 2 + 1) / 2)
    gain, best = 1 / np.log2(3), 1 + 1 / np.log2(3)
    assert found["ndcg_at_10"] == pytest.approx(100 * (gain / best + 1) / 2)
    assert found["recall_at_1"] == pytest.approx(100 * (0 + 1) / 2)
    assert found["recall_at_5"] == found["recall_at_10"] == pytest.approx(100 * (1 / 2 + 1) / 2)
    assert found["accuracy"] == 50
    # The most relevant passage is the right first one, not any relevant one.
    assert values([1, 2, 0])["accuracy"] == 0
    assert values([1, 2, 0])["mrr_at_10"] == 100
    assert values([0] * 10 + [1])["mrr_at_10"] == 0


def test_gain_is_that_of_scikit_learn():
    judge = pytest.importorskip("sklearn.metrics").ndcg_score
    generator = np.random.default_rng(1)
    for size in (2, 7, 10, 23):
        relevances = generator.integers(0, 4, size).astype(float)
        relevances[0] = 3
        scores = generator.permutation(size).astype(float)
        ranked = ranked_relevances(relevances, scores)
        expected = judge([relevances], [scores], k=10)
        assert ranking_metric("ndcg_at_10", [ranked]) == pytest.approx(100 * expected)


def test_equal_scores_find_nothing():
    assert ranked_relevances([2, 0, 1], [0.5, 0.5, 0.5]).tolist() == [0, 1, 2]
    refused("query must have a relevant passage", ranking_metric, "accuracy", [np.zeros(3)])
