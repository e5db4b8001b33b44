"""Pictures of a report."""

import itertools

import pytest

from keras_attn.training.reporting.pictures import draw_forecasts

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("time", ["1999", "2024-03-01", "2024-03-01 05:00:00+00:00", "x" * 60])
def test_times_below_a_forecast_do_not_overlap(time):
    pytest.importorskip("matplotlib")
    steps = 12
    target = {
        "name": "load",
        "past": [1.0] * 8,
        "actual": [1.0] * 4,
        "quantiles": [[0.5, 1.0, 1.5]] * 4,
    }
    one = {"series": "", "targets": [target], "levels": [0.1, 0.5, 0.9], "times": [time] * steps}
    figure = draw_forecasts([one])
    figure.canvas.draw()
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    assert len(labels) >= 2
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
