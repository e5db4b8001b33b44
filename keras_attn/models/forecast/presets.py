"""Sizes of forecasters, numbers only."""

from keras_attn.models.presets import stack_config

FORECASTER_PRESETS = {
    "forecast_tiny": {
        "description": "forecaster of series of numbers, for hundreds of steps and more",
        "paper": "sizes of our own; Nie et al., 2023, https://arxiv.org/abs/2211.14730",
        "config": stack_config(2, 32, 4, 64, dropout=0.2),
    },
}
