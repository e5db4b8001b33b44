"""The linear forecast by ridge regression, before anything is learned by gradients."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_attn.models.forecast.forecaster import Forecaster
from keras_attn.models.forecast.regression import ridge_regression
from keras_attn.models.forecast.scaled_window import ScaledWindow, read_window

_MOST_FEATURES = 1_024
_ROUNDS = 2  # of the effect of known covariates
_PARTS = (1, 2, 4)  # of the context that may be enough
_LEAST_HORIZONS = 2  # in a part of it


def fit_linear_forecast(
    model: Forecaster, inputs: Mapping[str, Any], labels: np.ndarray, distance: int = 1
) -> None:
    """Gives the linear part of a forecaster the weights of a ridge regression, and its spread.

    A target is forecast from its own values, from those and known covariates, or from all channels,
    and from the whole context or its last steps, by their error in cross-validation. The quantiles
    begin with those of the errors there. With too few windows without missing labels, or too long a
    context, a target keeps the weights it has.

    Args:
        model: An untrained forecaster.
        inputs: What it is called with, for windows in the order of their series.
        labels: Targets of the horizons, (windows, horizon, targets), NaN where one is missing.
        distance: Number of steps from a window to the next.

    References:
        Zeng et al., 2023, https://arxiv.org/abs/2205.13504, section 4: the linear forecast.
    """
    if model.context >= _MOST_FEATURES:
        return
    inputs = {name: keras.ops.convert_to_tensor(x, "float32") for name, x in inputs.items()}
    window = read_window(inputs, model.targets, model.unknown, model.known_scales)
    mean, deviation = (np.asarray(each, np.float64) for each in (window.mean, window.deviation))
    labels = (labels - mean) / np.where(deviation > 0, deviation, np.nan)
    gap = -(-(model.context + model.horizon) // distance)
    names = ["linear", "spread", *(["linear_known"] if model.known_scales else [])]
    variables = {name: model.get_layer(name).weights[0] for name in names}
    values = {name: np.array(variable) for name, variable in variables.items()}
    quantiles = values["spread"].reshape(model.horizon, model.targets, -1)
    for target in range(model.targets):
        whole = ~np.isnan(labels[..., target]).any(axis=1)
        windows = _Windows.of(window, whole, model, target)
        fit = windows.fit(labels[whole, :, target], gap)
        if fit is not None:
            of_steps, of_known, constant, errors = fit
            linear = values["linear"][..., target]
            linear[:] = of_steps.reshape(linear.shape)
            if model.known_scales:
                values["linear_known"][..., target] = of_known
            found = np.quantile(errors, model.quantiles, axis=0)  # (quantiles, horizon)
            found += constant - found[model.quantiles.index(0.5)]
            quantiles[:, target] = found.T
    for name, variable in variables.items():
        variable.assign(values[name])


class _Windows(NamedTuple):
    """Windows for the forecast of a target.

    Attributes:
        steps: Values, (windows, context or one more, channels).
        known: Known covariates, (windows, context + horizon, known).
        own: The channel of the target.
        context: Number of steps.
    """

    steps: np.ndarray
    known: np.ndarray
    own: int
    context: int

    @classmethod
    def of(
        cls, window: ScaledWindow, rows: np.ndarray, model: Forecaster, target: int
    ) -> "_Windows":
        steps = window.steps(model.reads_across)
        if not model.reads_across:  # perhaps hundreds: only one is converted
            steps, target = steps[..., target : target + 1], 0
        steps = np.asarray(steps, np.float64)[rows]
        known = np.zeros((len(steps), model.context + model.horizon, 0))
        if window.known is not None:
            known = np.asarray(window.known, np.float64)[rows]
        return cls(steps, known, target, model.context)

    def fit(
        self, labels: np.ndarray, gap: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Fits the weights of steps and of known covariates, constants and errors.

        What a known covariate does at its own step, the same at each, is subtracted first: from
        the labels, and from the values of the target.
        """
        choices = self._choices(labels.shape[1])
        effect = np.zeros(self.known.shape[2])
        for _ in range(_ROUNDS if effect.size else 0):
            fit = ridge_regression(*self._without(effect, labels), gap, choices[:1])
            if fit is None:
                return None
            of_steps = self.known[:, self.context :].reshape(-1, effect.size)
            effect += np.linalg.lstsq(of_steps, fit[2].ravel())[0]
        fit = ridge_regression(*self._without(effect, labels), gap, choices)
        if fit is None:
            return None
        weights, constant, errors = fit
        size, context, horizon = self.steps[0].size, self.context, labels.shape[1]
        of_steps = weights[:size].reshape(*self.steps.shape[1:], horizon)
        of_known = weights[size:].reshape(*self.known.shape[1:], horizon)
        of_known[:context] -= of_steps[:context, self.own][:, None] * effect[:, None]
        own = np.arange(horizon)
        of_known[context + own, :, own] += effect
        return of_steps, of_known, constant, errors

    def _choices(self, horizon: int) -> list[np.ndarray]:
        """Own values, those and known covariates, or all; of all steps or of the last ones."""
        own = np.arange(self.steps.shape[2]) == self.own
        known = np.full(self.known.shape[2], True)
        choices = []
        for part in _PARTS:
            last = self.context // part
            if part == 1 or last >= _LEAST_HORIZONS * horizon:
                steps, of_known = (
                    np.arange(each.shape[1]) >= self.context - last
                    for each in (self.steps, self.known)
                )
                for of_steps in ((own, ~known), (own, known), (own | True, known)):
                    pairs = zip((steps, of_known), of_steps, strict=True)
                    masks = [np.outer(rows, channels).ravel() for rows, channels in pairs]
                    choices.append(np.concatenate(masks))
        return [choice for choice in choices if choice.sum() <= _MOST_FEATURES]

    def _without(self, effect: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features, (windows, features), and labels without the effect of known covariates."""
        of_known, steps = self.known @ effect, self.steps.copy()
        steps[:, : self.context, self.own] -= of_known[:, : self.context]
        features = [
            each.reshape(len(steps), math.prod(each.shape[1:])) for each in (steps, self.known)
        ]
        return np.concatenate(features, axis=1), labels - of_known[:, self.context :]
