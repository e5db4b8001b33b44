"""The fit of the linear forecast against solved equations and against processes that are known."""

import itertools

import numpy as np
import pytest

from keras_attn.models import Forecaster
from keras_attn.models.forecast.regression import (
    _STRENGTHS,
    fit_linear_forecast,
    ridge_regression,
)

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}


def solved(inputs, labels, strength, has_constant):
    """The map with the constant in a last row, which is not penalized."""
    inputs = np.column_stack([inputs, np.full(len(inputs), float(has_constant))])
    penalty = np.diag([min(strength, 1e12) * len(inputs)] * (inputs.shape[1] - 1) + [0.0])
    left = inputs.T @ inputs + penalty
    return np.linalg.lstsq(left, inputs.T @ labels)[0]


@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize(("seed", "noise"), [(0, 0.3), (1, 3.0), (2, 1e3)])
def test_what_has_the_least_error_on_blocks_that_the_fit_has_not_seen(seed, noise, constant):
    draw = np.random.default_rng(seed)
    inputs, gap = draw.normal(size=(60, 7)) + 1, 4
    labels = inputs @ draw.normal(size=(7, 3)) + noise * (draw.normal(size=(60, 3)) + constant)
    errors = {}
    for options in itertools.product(_STRENGTHS, (False, True)):
        parts = []
        for first in range(0, 60, 12):
            others = [row for row in range(60) if not first - gap <= row < first + 12 + gap]
            weights = solved(inputs[others], labels[others], *options)
            block = np.column_stack([inputs, np.ones(60)])[first : first + 12]
            parts.append(labels[first : first + 12] - block @ weights)
        errors[options] = np.concatenate(parts)
    best = min(errors, key=lambda options: np.abs(errors[options]).mean())
    *weights, found = ridge_regression(inputs, labels, gap)
    np.testing.assert_allclose(
        np.vstack(weights), solved(inputs, labels, *best), rtol=1e-6, atol=1e-6 * noise
    )
    np.testing.assert_allclose(found, errors[best], rtol=1e-6, atol=1e-6 * noise)


@pytest.mark.parametrize(("windows", "gap"), [(0, 1), (14, 0), (30, 12)])
def test_too_few_windows_to_judge_a_fit_by(windows, gap):
    assert ridge_regression(np.ones((windows, 2)), np.ones((windows, 1)), gap) is None


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
    np.testing.assert_allclose(kernel[:, 0], alone[:, 0], rtol=1e-4, atol=1e-5)
    assert not kernel[:, 1].any()


def test_a_context_of_more_steps_than_a_fit_is_for_is_left_alone(monkeypatch):
    monkeypatch.setattr("keras_attn.models.forecast.regression._MOST_FEATURES", 7)
    assert not np.asarray(fitted(process(0.9, 400, 3)).get_layer("linear").weights[0]).any()
