"""Measures of numbers; scikit-learn and scipy are the judges."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as judge

from keras_attn.evaluation import NUMBERS

RANDOM = np.random.default_rng(7)
EXPECTED = RANDOM.normal(40, 9, 53).round()
FOUND = EXPECTED + RANDOM.normal(0, 5, 53)
JUDGES = {
    "mae": judge.mean_absolute_error(EXPECTED, FOUND),
    "rmse": judge.root_mean_squared_error(EXPECTED, FOUND),
    "r2": 100 * judge.r2_score(EXPECTED, FOUND),
    "pearson": 100 * stats.pearsonr(EXPECTED, FOUND).statistic,
    "spearman": 100 * stats.spearmanr(EXPECTED, FOUND).statistic,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_they_are_those_of_others(name):
    assert NUMBERS[name](FOUND, EXPECTED) == pytest.approx(JUDGES[name])


def test_the_mean_explains_nothing():
    assert NUMBERS["r2"](np.full(53, EXPECTED.mean()), EXPECTED) == pytest.approx(0)
    assert NUMBERS["r2"](np.zeros(3), np.ones(3)) == 0


@pytest.mark.parametrize("name", ["r2", "pearson", "spearman"])
def test_one_number_has_no_correlation(name):
    assert NUMBERS[name](np.ones(1), np.zeros(1)) == 0
