"""Forecasts of series of numbers."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data.series.columns import OF_VALUES
from keras_attn.data.series.memory import read_given
from keras_attn.data.series.reading import TIME_STEPS
from keras_attn.documents import parse_json
from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.forecasts import Forecasts, forecast_series, histories_of
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.histories import Histories, last_values
from keras_attn.tasks.serving import ServingFunction, compiled
from keras_attn.tasks.token_view import TokenView
from keras_attn.validation import require, require_one_of, require_positive

_EXAMPLES = 3


class ForecastTask(Task):
    """Forecasts quantiles of series from their past, a horizon at once.

    Args:
        backbone: A model from `{"past": float32 (batch, context, channels), "future": float32
            (batch, horizon, known)}` to quantiles (batch, horizon, targets, quantiles):
            `keras_attn.models.Forecaster`.
        columns: Names of the channels by role: "target", and "unknown" and "known" for covariates;
            "time" and "series" name the columns of tables that have these.
        season: Number of steps of a season, for the seasonal naive forecast to compare with.
        time_steps: "equal" if the times of tables are equal steps apart, "rows" if each row is a
            step.

    Raises:
        UserError: `columns` are not those of the model's channels, or `season` is not positive, or
            there is no such `time_steps`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = Forecaster(context=6, horizon=4, quantiles=(0.1, 0.5, 0.9), **sizes)
        >>> task = ForecastTask(model, {"target": ["sales"]})
        >>> past = [[5.0, 7.0, 6.0, 8.0, 7.0, 9.0]]
        >>> task.predict(past).shape, task.median(past).shape
        ((1, 4, 1, 3), (1, 4, 1))
    """

    kind = "forecast"
    _roles = ()
    _saved = ("columns", "season", "time_steps")
    loss_values = ("loss",)

    def __init__(
        self,
        backbone: keras.Model,
        columns: Mapping[str, Sequence[str]],
        season: int = 1,
        time_steps: str = "equal",
    ):
        super().__init__(backbone, {})
        require("past" in backbone.input, "The model must take `past`.", inputs=[*backbone.input])
        require_positive(season=season)
        self.columns = {role: list(names) for role, names in columns.items()}
        require_one_of("time_steps", time_steps, TIME_STEPS)
        self.season = season
        self.time_steps = time_steps
        sizes = {
            "target": backbone.targets,
            "unknown": backbone.unknown,
            "known": len(backbone.known_scales),
        }
        found = {role: len(self.columns.get(role, ())) for role in OF_VALUES}
        require(
            found == sizes,
            f"`columns` must name the channels of the model, {_written(sizes)}.",
            columns=self.columns,
        )
        specs = list(self._specs().values())
        specs += [tf.TensorSpec([None, backbone.targets], tf.float32)] * len(backbone.usual)
        self._forecast = ModelGraph(backbone, self._quantiles, specs, self._settings)

    @property
    def quantiles(self) -> list[float]:
        """The levels that are forecast."""
        return list(self.backbone.quantiles)

    @property
    def horizon(self) -> int:
        """Number of steps that are forecast."""
        return self.backbone.horizon

    @property
    def context(self) -> int:
        """Number of steps that are read."""
        return self.backbone.context

    @property
    def histories(self) -> Histories:
        """The form of inputs: lengths and channels."""
        known = len(self.backbone.known_scales)
        channels = self.backbone.targets + self.backbone.unknown + known
        return Histories(self.backbone.targets, channels, known, self.horizon)

    def loss(self, labels: tf.Tensor, outputs: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the pinball loss, twice, so that it is the absolute error at the median.

        Args:
            labels: float32 (rows, horizon, targets), NaN where one is not known.
            outputs: Quantiles (rows, horizon, targets, quantiles).
            label_smoothing: Must be 0.

        Returns:
            The loss, the same again, the number of known labels, and how many of them lie between
            the outer quantiles.
        """
        del label_smoothing
        known = ~tf.math.is_nan(labels)
        labels, real = tf.where(known, labels, 0.0), tf.cast(known, outputs.dtype)
        levels = tf.constant(self.quantiles, outputs.dtype)
        errors = tf.cast(labels, outputs.dtype)[..., None] - outputs
        loss = 2 * tf.reduce_mean(tf.maximum(levels * errors, (levels - 1) * errors), axis=-1)
        inside = (errors[..., 0] >= 0) & (errors[..., -1] <= 0) & known
        total = tf.reduce_sum(loss * real)
        return total, total, tf.reduce_sum(real), tf.reduce_sum(tf.cast(inside, outputs.dtype))

    def predict(
        self,
        past: Any,
        future: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """Forecasts quantiles.

        Args:
            past: The history of each series, (batch, steps, channels), or (batch, steps) for one
                channel; or a list of histories of different lengths. Channels are targets, unknown
                and known covariates, NaN where a value is missing. The last `context` steps are
                read; fewer are allowed.
            future: Known covariates of the next `horizon` steps, (batch, horizon, known), if the
                model has some.
            progress: Called with the number of series done after each batch.

        Returns:
            float64 (batch, horizon, targets, quantiles), increasing along the quantiles.

        Raises:
            UserError: The inputs have other shapes, or a history has no value of a target.
        """
        return self.histories.forecast(self._call, past, future, self.context, progress)

    def median(self, past: Any, future: Any = None) -> np.ndarray:
        """Forecasts the median, float64 (batch, horizon, targets); arguments as for `predict`."""
        return self.predict(past, future)[..., self.quantiles.index(0.5)]

    def forecast(
        self,
        data: Any,
        columns: Mapping[str, Any] | None = None,
        encoding: str | None = None,
    ) -> Forecasts:
        """Forecasts the series of a table, each from its last value on.

        Args:
            data: A path or a list of them, a pandas DataFrame, a mapping of columns, a list of
                dicts, or an array (steps, channels). Rows after the last value of the targets are
                the horizon's, with the known covariates.
            columns: Columns of the table by role, see `keras_attn.data.series.reading.read_series`;
                by default those that the task was trained on.
            encoding: Encoding of files, by default UTF-8.

        Returns:
            The forecasts, with their times.

        Raises:
            UserError: The data cannot be read, or known covariates of the horizon are missing.
        """
        return forecast_series(
            self, read_given(data, columns or self.columns, encoding, self.time_steps)
        )

    def _call(self, past: np.ndarray, future: np.ndarray | None) -> np.ndarray:
        # The model computes in float32, in which small changes of large numbers would be lost.
        targets = self.backbone.targets
        level = last_values(past[..., :targets])
        own, others = past[..., :targets] - level, past[..., targets:]
        inputs = [np.concatenate([own, others], axis=-1)]
        if future is not None:
            inputs.append(future)
        for name, values in self.backbone.usual.items():
            values = np.broadcast_to(values, level[:, 0].shape)
            inputs.append(values - level[:, 0] if name == "center" else values)
        return (
            self._forecast(*(each.astype(np.float32) for each in inputs)).numpy() + level[..., None]
        )

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`).

        A history may have any number of steps, NaN where a value is missing.
        """
        del n_best  # there is one forecast
        quantiles = compiled(self._quantiles, jit)
        specs, middle = self._specs(), self.quantiles.index(0.5)

        def forecast(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
            found = quantiles(*(inputs[name] for name in specs))
            levels = tf.repeat(tf.constant([self.quantiles]), tf.shape(found)[0], axis=0)
            return {"median": found[..., middle], "quantiles": found, "levels": levels}

        return {
            "serving_default": ServingFunction(forecast, specs, self._example_inputs),
            "attention": attention_function(self.backbone, self._view, specs, self._example_inputs),
        }

    def example_texts(self) -> list[str]:
        """Returns made-up histories as JSON."""
        steps = np.arange(self.context)[:, None]
        form = self.histories
        scale = 10.0 ** np.arange(form.channels)
        rows = []
        for number in range(1, _EXAMPLES + 1):
            past = scale * (number * np.sin(steps / number) + steps / self.context)
            future = np.cos(np.arange(self.horizon))[:, None] * scale[form.channels - form.known :]
            rows.append(written_example(past, future if form.known else None))
        return rows

    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Reads histories as the model does, with their patches of time for tokens.

        Args:
            strings: Strings (batch,), each a history as JSON, or the name of a table, whose first
                series is read.
        """
        texts = [text.decode() for text in strings.numpy()]
        inputs = self._example_inputs([self._history(text) for text in texts])
        return self._view(*(tf.constant(inputs[name], tf.float32) for name in inputs))

    def _history(self, text: str) -> str:
        if text.lstrip().startswith("{"):
            return text
        table = read_given(text, self.columns, time_steps=self.time_steps)
        past, future = histories_of(self.histories, table)
        return written_example(past[0], future[0] if self.histories.known else None)

    def _view(self, past: tf.Tensor, *others: tf.Tensor) -> TokenView:
        length, horizon = self.backbone.patch_length, self.horizon
        before, after = -(-self.context // length), -(-horizon // length)
        places = range(-before, after)
        names = [_step_names(1 + place * length, length) for place in places]
        inputs = self._model_inputs(past, *others)
        return TokenView(inputs, source=tf.repeat(tf.constant([names]), tf.shape(past)[0], axis=0))

    def _example_inputs(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Inputs of histories that are written as JSON, equally long and without missing values."""
        rows = [parse_json(text, "an example") for text in texts]
        for row in rows:
            require(
                isinstance(row, dict) and "past" in row,
                'An example must be JSON such as {"past": [[5.0], [7.0]]}.',
                example=row,
            )
        form, lengths = self.histories, sorted({len(row["past"]) for row in rows})
        require(len(lengths) == 1, "Examples must have equally many steps.", steps=lengths)
        past = form.past([row["past"] for row in rows], lengths[0]).astype(np.float32)
        require(not np.isnan(past).any(), "Examples must have no missing value.", past=past.shape)
        future = (
            form.future([row["future"] for row in rows]).astype(np.float32) if form.known else None
        )
        return {"past": past} | ({} if future is None else {"future": future})

    def _specs(self) -> dict[str, tf.TensorSpec]:
        """The inputs of an export."""
        form = self.histories
        specs = {"past": tf.TensorSpec([None, None, form.channels], tf.float32)}
        if form.known:
            specs["future"] = tf.TensorSpec([None, form.horizon, form.known], tf.float32)
        return specs

    def _quantiles(self, *inputs: tf.Tensor) -> tf.Tensor:
        return self.backbone(self._model_inputs(*inputs), training=False)

    def _model_inputs(self, past: tf.Tensor, *others: tf.Tensor) -> dict[str, tf.Tensor]:
        """The last steps of histories, with missing ones before those that are shorter."""
        context = self.context
        missing = tf.maximum(context - tf.shape(past)[1], 0)
        past = tf.pad(past, [[0, 0], [missing, 0], [0, 0]], constant_values=np.nan)[:, -context:]
        past = tf.ensure_shape(past, [None, context, past.shape[-1]])
        names = ["future"] * bool(self.backbone.known_scales) + [*self.backbone.usual]
        return {"past": past} | dict(zip(names, others, strict=False))

    def __repr__(self) -> str:
        names = f"{self.horizon} steps of {', '.join(self.columns['target'])}"
        return f"{type(self).__name__}({type(self.backbone).__name__}, {names})"


def written_example(past: np.ndarray, future: np.ndarray | None = None) -> str:
    """Writes a history and known covariates of its horizon as JSON, for examples of exports."""
    row = {"past": np.asarray(past, np.float32).astype(float).tolist()}
    if future is not None:
        row["future"] = np.asarray(future, np.float32).astype(float).tolist()
    return json.dumps(row)


def _step_names(first: int, length: int) -> str:
    """The name of a patch by its steps, counted from the last one of the past as 0."""
    steps = sorted({first, first + length - 1})
    return "..".join(f"{step:+d}" if step else "0" for step in steps)


def _written(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {role}" for role, count in sizes.items())
