"""Exported forecasters."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.data.series.memory import read_given
from keras_attn.tasks.exported.base import Exported
from keras_attn.tasks.forecasts import Forecasts, forecast_series
from keras_attn.tasks.histories import Histories


class ExportedForecast(Exported):
    """An exported `ForecastTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = ForecastTask(Forecaster(context=6, horizon=4, **sizes), {"target": ["sales"]})
        >>> folder, past = task.export("exported/demo"), [[5.0, 7.0, 6.0, 8.0, 7.0, 9.0]]
        >>> np.allclose(open_exported("exported/demo").predict(past), task.predict(past))
        True
    """

    kind = "forecast"
    needs = frozenset({"serving_default"})

    def __init__(self, folder, model):
        super().__init__(folder, model)
        self._signature = model.signatures["serving_default"]
        inputs = self._signature.structured_input_signature[1]
        known = inputs["future"].shape[2] if "future" in inputs else 0
        _, horizon, targets, _ = self._signature.structured_outputs["quantiles"].shape
        self.histories = Histories(targets, inputs["past"].shape[2], known, horizon)
        self.horizon = horizon
        self._levels: list[float] = []

    @property
    def quantiles(self) -> list[float]:
        """The levels that are forecast."""
        if not self._levels:
            form = self.histories
            future = np.zeros((1, form.horizon, form.known)) if form.known else None
            past = np.arange(2.0)[None, :, None] + np.zeros(form.channels)
            outputs = self._run(past, future)
            self._levels = [float(str(level)) for level in outputs["levels"].numpy()[0]]
        return self._levels

    def predict(
        self,
        past: Any,
        future: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """Forecasts quantiles (see `ForecastTask.predict`)."""

        def call(past: np.ndarray, future: np.ndarray | None) -> np.ndarray:
            return self._run(past, future)["quantiles"].numpy()

        return self.histories.forecast(call, past, future, progress=progress)

    def median(self, past: Any, future: Any = None) -> np.ndarray:
        """Forecasts the median (see `ForecastTask.median`)."""
        return self.predict(past, future)[..., self.quantiles.index(0.5)]

    def forecast(
        self,
        data: Any,
        columns: Mapping[str, Any] | None = None,
        encoding: str | None = None,
    ) -> Forecasts:
        """Forecasts the series of a table (see `ForecastTask.forecast`), by default of usual names.

        An export does not know the columns that it was trained on.
        """
        return forecast_series(self, read_given(data, columns, encoding))

    def _run(self, past: np.ndarray, future: np.ndarray | None) -> Mapping[str, tf.Tensor]:
        inputs = {"past": past} | ({} if future is None else {"future": future})
        return self._signature(
            **{name: tf.constant(values, tf.float32) for name, values in inputs.items()}
        )
