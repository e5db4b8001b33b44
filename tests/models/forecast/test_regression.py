"""The ridge regression against solved equations."""

import itertools

import numpy as np
import pytest

from keras_attn.models.forecast.regression import _STRENGTHS, ridge_regression


def solved(inputs, labels, strength, has_constant):
    """The map with the constant in a last row, which is not penalized."""
    inputs = np.column_stack([inputs, np.full(len(inputs), float(has_constant))])
    penalty = np.diag([min(strength, 1e12) * len(inputs)] * (inputs.shape[1] - 1) + [0.0])
    left = inputs.T @ inputs + penalty
    return np.linalg.lstsq(left, inputs.T @ labels)[0]


@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize(("seed", "noise"), [(0, 0.3), (1, 3.0), (2, 1e3)])
def test_what_has_less_error_on_blocks_that_the_fit_has_not_seen(seed, noise, constant):
    draw = np.random.default_rng(seed)
    inputs, gap = draw.normal(size=(60, 7)) + 1, 4
    labels = inputs @ draw.normal(size=(7, 3)) + noise * (draw.normal(size=(60, 3)) + constant)
    choices = [np.arange(7) < count for count in (2, 7, 7, 4)]
    blocks = np.arange(60).reshape(5, 12)

    def errors_of(has_constant, choice, strength):
        errors = []
        for block in blocks:
            others = [row for row in range(60) if not block[0] - gap <= row <= block[-1] + gap]
            weights = solved(inputs[others][:, choice], labels[others], strength, has_constant)
            with_one = np.column_stack([inputs[block][:, choice], np.ones(12)])
            errors.append(labels[block] - with_one @ weights)
        return np.array(errors)

    best = chosen = None
    for has_constant, choice in itertools.product((False, True), choices):
        found = {each: errors_of(has_constant, choice, each) for each in _STRENGTHS}
        strength = min(found, key=lambda each: np.abs(found[each]).mean())
        if best is not None:
            gains = np.abs(best).mean(axis=(1, 2)) - np.abs(found[strength]).mean(axis=(1, 2))
            if gains.mean() <= gains.std(ddof=1) / np.sqrt(5):
                continue
        best, chosen = found[strength], (choice, strength, has_constant)
    choice, *options = chosen
    weights, of_all, found = ridge_regression(inputs, labels, gap, choices)
    expected = solved(inputs[:, choice], labels, *options)
    near = {"rtol": 1e-6, "atol": 1e-6 * noise}
    np.testing.assert_allclose(np.vstack([weights[choice], of_all]), expected, **near)
    np.testing.assert_allclose(found, best.reshape(60, 3), **near)
    assert not weights[~choice].any()


@pytest.mark.parametrize(("windows", "gap"), [(0, 1), (14, 0), (30, 12)])
def test_too_few_windows_to_judge_a_fit_by(windows, gap):
    data = np.ones((windows, 2)), np.ones((windows, 1))
    assert ridge_regression(*data, gap, [np.full(2, True)]) is None
