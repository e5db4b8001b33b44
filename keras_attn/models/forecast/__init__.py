"""Forecasters of series of numbers."""

from keras_attn.models.forecast.forecaster import QUANTILES, Forecaster
from keras_attn.models.forecast.presets import FORECASTER_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["QUANTILES", "Forecaster"]

register_presets("Forecaster", FORECASTER_PRESETS, "forecast", ("forecast",))
