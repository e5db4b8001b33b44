"""Metrics of forecasts, by numbers worked out by hand and by scikit-learn's pinball loss."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from keras_attn.evaluation.forecasts import (
    measure_forecasts,
    pinball,
    seasonal_errors,
    seasonal_naive,
)

LEVELS = [0.1, 0.5, 0.8]


def test_the_pinball_loss_is_twice_that_of_scikit_learn():
    draw = np.random.default_rng(2)
    actual, quantiles = draw.normal(size=31), draw.normal(size=(31, 3))
    losses = pinball(actual, quantiles, LEVELS)
    for place, level in enumerate(LEVELS):
        expected = 2 * mean_pinball_loss(actual, quantiles[:, place], alpha=level)
        assert losses[:, place].mean() == pytest.approx(expected)


def test_the_seasonal_naive_forecast_repeats_the_last_season():
    past = np.array([[[1.0], [2], [3], [4], [5]], [[np.nan], [7], [8], [np.nan], [9]]])
    found = seasonal_naive(past, horizon=5, season=3)[..., 0]
    np.testing.assert_array_equal(found, [[3, 4, 5, 3, 4], [8, 8, 9, 8, 8]])
    np.testing.assert_array_equal(seasonal_naive(past, 2, 1)[..., 0], [[5, 5], [9, 9]])
    past = np.array([[[1.0], [2], [3], [np.nan], [5], [6]]])  # the fourth as the first
    np.testing.assert_array_equal(seasonal_naive(past, 3, 3)[..., 0], [[1, 5, 6]])


def test_metrics_by_hand():
    # History 2 4 6 10 with a season of 2: |6 - 2| and |10 - 4|, 5 on average.
    scales = seasonal_errors(np.array([[2.0], [4], [6], [10]]), 2)
    np.testing.assert_array_equal(scales, [5])
    assert np.isnan(seasonal_errors(np.array([[2.0], [4]]), 2)).all()
    actual = np.array([[[10.0], [np.nan], [20]]])
    quantiles = np.array([[[[8.0, 9, 12]], [[0, 0, 0]], [[11, 15, 18]]]])
    found = measure_forecasts(actual, quantiles, LEVELS, scales[None])
    # Errors of the median: 1 and 5. Losses: 2 · (.1·2, .5·1, .2·2), 2 · (.1·9, .5·5, .8·2).
    losses = [2 * (0.2 + 0.5 + 0.4) / 3, 2 * (0.9 + 2.5 + 1.6) / 3]
    assert found == pytest.approx(
        {"mase": 3 / 5, "mae": 3, "wql": 100 * sum(losses) / 30, "coverage": 50}
    )
    assert "mase" not in measure_forecasts(actual, quantiles, LEVELS, np.array([[0.0]]))
