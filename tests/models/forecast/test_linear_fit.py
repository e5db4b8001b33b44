"""The fit of the linear forecast against processes whose best forecast is known."""

import numpy as np
import pytest

from keras_attn.models import Forecaster
from keras_attn.models.forecast.linear_fit import fit_linear_forecast

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}


def windows_of(values, context, horizon):
    origins = range(context, len(values) - horizon + 1)
    past = np.stack([values[at - context : at] for at in origins])
    return {"past": past[..., None]}, np.stack([values[at : at + horizon] for at in origins])


def fitted(values, context=8, horizon=3, **options):
    model = Forecaster(context, horizon, quantiles=(0.1, 0.5, 0.9), **SIZES, **options)
    inputs, labels = windows_of(values, context, horizon)
    fit_linear_forecast(model, inputs, labels[..., None])
    return model


def process(factor, steps, seed):
    noise, values = np.random.default_rng(seed).normal(size=steps), np.zeros(steps)
    for step in range(1, steps):
        values[step] = factor * values[step - 1] + noise[step]
    return values


@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_forecast_and_spread_of_an_autoregression(factor):
    model = fitted(process(factor, 3000, 1), context=24)
    inputs, labels = windows_of(process(factor, 3000, 2), 24, 3)
    found = np.asarray(model(inputs))[:, :, 0]
    best = inputs["past"][:, -1] * factor ** np.arange(1, 4)
    assert np.abs(labels - found[..., 1]).mean() <= 1.05 * np.abs(labels - best).mean()
    inside = (found[..., 0] <= labels) & (labels <= found[..., 2])
    np.testing.assert_allclose(inside.mean(), 0.8, atol=0.02)


def test_a_target_that_follows_another_one():
    first = process(0.9, 2000, 4)
    noise = np.random.default_rng(5).normal(size=2000)
    both = np.column_stack([first, np.roll(first, 3) + 0.3 * noise])[3:]
    inputs = {"past": np.stack([both[at - 24 : at] for at in range(24, 1990)])}
    labels = np.stack([both[at : at + 5] for at in range(24, 1990)])
    scales = both.std(axis=0).tolist()
    model = Forecaster(24, 5, targets=2, scales=scales, quantiles=(0.1, 0.5, 0.9), **SIZES)
    usual = {"scale": np.tile(np.float32(scales), (len(labels), 1))}
    fit_linear_forecast(model, inputs | usual, labels)
    found = np.asarray(model(inputs))[:, :, 1, 1]
    last = inputs["past"][:, -3:, 0]
    best = np.column_stack([last, 0.9 * last[:, -1], 0.81 * last[:, -1]])
    errors = [np.abs(labels[..., 1] - each).mean() for each in (found, best)]
    assert errors[0] <= 1.05 * errors[1]
    # Too many values together: each from its own.
    assert Forecaster(171, 5, targets=3, **SIZES).get_layer("linear").kernel.shape == (171, 5, 3)
    assert Forecaster(170, 5, targets=3, **SIZES).get_layer("linear").kernel.shape == (170, 3, 5, 3)


@pytest.mark.parametrize("lag", [0, 2])
def test_known_covariates_at_their_step_and_later(lag):
    draw = np.random.default_rng(6)
    known, noise = draw.normal(size=1500), draw.normal(size=1500)
    values = np.column_stack([noise + 10 + 3 * np.roll(known, lag), known])[5:]
    rows = range(24, 1480)
    past = np.stack([values[at - 24 : at] for at in rows])
    future, labels = (np.stack([values[at : at + 5, one] for at in rows]) for one in (1, 0))
    inputs = {"past": past, "future": future[..., None]}
    usual = {"scale": [3.0], "center": [10.0]}
    model = Forecaster(
        24, 5, known_scales=[1.0], scales=usual["scale"], centers=usual["center"], **SIZES
    )
    given = {name: np.full((len(labels), 1), *values) for name, values in usual.items()}
    fit_linear_forecast(model, inputs | given, labels[..., None])
    found = np.asarray(model(inputs))[:, :, 0, 4]
    best = np.stack([noise[at + 5 : at + 10] for at in rows])  # 5 steps were cut off
    assert np.abs(labels - found).mean() <= 1.05 * np.abs(best).mean()


def test_missing_labels_leave_their_window_out():
    values = process(0.9, 400, 3)
    inputs, labels = windows_of(values, 8, 3)
    labels = np.stack([labels, np.full_like(labels, np.nan)], axis=-1)
    labels[:100, 1, 0] = np.nan
    inputs = {"past": np.concatenate([inputs["past"]] * 2, axis=-1)}
    model = Forecaster(8, 3, targets=2, quantiles=(0.1, 0.5, 0.9), **SIZES)
    fit_linear_forecast(model, inputs, labels)
    kernel = np.asarray(model.get_layer("linear").weights[0])
    alone = np.asarray(fitted(values[100:]).get_layer("linear").weights[0])
    np.testing.assert_allclose(kernel[:, 0, :, 0], alone[:, 0, :, 0], rtol=1e-4, atol=1e-5)
    assert not kernel[..., 1].any()


def test_a_context_of_more_steps_than_a_fit_is_for_is_left_alone(monkeypatch):
    monkeypatch.setattr("keras_attn.models.forecast.linear_fit._MOST_FEATURES", 7)
    assert not np.asarray(fitted(process(0.9, 400, 3)).get_layer("linear").weights[0]).any()
