"""Runs of forecasters of series."""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from keras_attn.data.examples.window import WindowExamples, Windows
from keras_attn.data.series.columns import ROLES, check_series_columns
from keras_attn.data.series.reading import described, read_series
from keras_attn.data.series.season import find_season
from keras_attn.data.series.series import SeriesPart, cut_before
from keras_attn.documents import read_json_object
from keras_attn.evaluation.forecasts import (
    FORECAST_METRICS,
    measure_forecasts,
    seasonal_errors,
    seasonal_naive,
)
from keras_attn.models.forecast.linear_fit import fit_linear_forecast
from keras_attn.tasks import ForecastTask, task_folder
from keras_attn.tasks.base import TASK_FILE
from keras_attn.tasks.forecast import written_example
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.reporting.forecasts import drawn_forecast
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.task_runs.base import TaskRun, with_lengths
from keras_attn.validation import UserError, require, require_one_of

_HELD_OUT = 0.1  # of the steps of each series, for validation and again for the test
_SEASON_FROM = 0.8  # of the steps: what is held out says nothing about the season
_HORIZON = 12  # steps, where there is no season
_MOST_OF_SERIES = 0.1  # that the horizon is by default, or more than two seasons
_SEASONS, _SHORT_SEASONS = 2, 9  # in a context
_SHORT_SEASON = 28  # steps
_LEAST_CONTEXT = 32
_PATCHES = 24  # about so many in a context
_LEAST_BEFORE = 4  # steps of a series before a forecast, or a season
_CONTEXTS_FOR_MEAN = 30  # in a series, to know its mean
_DRIFTS, _MOST_DRIFT = 5, 0.25  # parts of a series; variance of their means, of all its variance
# What the best of twenty validations easily gains by chance: at least, and of a single horizon.
_LEAST_GAIN, _GAIN_OF_ONE = 0.02, 0.3
_MIXED = 0.5  # of the windows in training
_MOST_WINDOWS = 20_000  # that are measured, at equal distances
_MOST_FITTED = 10_000  # windows of the linear forecast
_LONGEST_PAST = 2_048  # steps that are given to an export
_EXAMPLES, _DRAWN = 8, 4
# Arguments of the model, and what they follow from.
_OF_DATA = {
    "context": "set `data.context`",
    "horizon": "set `data.horizon`",
    **dict.fromkeys(
        ("targets", "unknown", "known_scales", "scales", "centers"), "set `data.columns`"
    ),
}


class Forecasts(NamedTuple):
    """Quantiles of windows.

    Attributes:
        windows: The windows.
        series: The series of each.
        quantiles: Their quantiles, (windows, horizon, targets, levels).
        levels: The levels.
        season: Steps of a season.
    """

    windows: Windows
    series: np.ndarray
    quantiles: np.ndarray
    levels: list[float]
    season: int


class ForecastRun(TaskRun):
    """Trains a forecaster on windows of series, and measures it on the last steps of each."""

    task_class = ForecastTask
    roles = ()
    columns = ROLES
    items = "windows"
    of_series = True
    lengths: ClassVar[Mapping[str, str]] = {name: name for name in ("season", "horizon", "context")}

    def check(self, settings):
        require(not settings.tokenizers, "Series need no `tokenizers`.", **settings.tokenizers)
        super().check(settings)
        training = settings.training
        require(
            training.label_smoothing == 0 and training.consistency == 0,
            "Forecasts have no `training.label_smoothing` and no `training.consistency`.",
            label_smoothing=training.label_smoothing,
            consistency=training.consistency,
        )
        for name in ("max_source_length", "max_target_length"):
            value = getattr(settings.data, name)
            require(value is None, f"Series have no `data.{name}`.", **{name: value})
        for name, instead in _OF_DATA.items():
            require(
                name not in settings.model,
                f"`model.{name}` follows from the data: {instead}.",
                **{name: settings.model.get(name)},
            )
        for name in settings.metrics:
            self.goal(name)

    def check_columns(self, columns):
        check_series_columns(columns)

    def with_source_lengths(self, settings):
        if not settings.init:
            return settings
        content = read_json_object(task_folder(settings.init) / TASK_FILE)
        found = {"season": content.get("season")} | dict(content["backbone"]["config"])
        return with_lengths(settings, self.lengths, found)

    def read_texts(self, data, seed, whole=False):
        train = read_part(data.train, data)
        if whole:
            return {"train": train}
        parts = {}
        for name, given in (("test", data.test), ("validation", data.valid)):
            if given:
                parts[name] = self.read_test(given, data)
            elif given is None:
                train, parts[name] = self.hold_out(train, data, seed)
        empty = [name for name, part in {"train": train, **parts}.items() if not len(part)]
        if empty:
            raise UserError(
                f"{train.name}: nothing is left for {empty[0]}. The longest series has "
                f"{train.table.ends().max():,} steps, and {horizon_of(data, train):,} are to be "
                "forecast. Set a smaller `data.horizon` (--set data.horizon=N)."
            )
        return {"train": train} | dict(reversed(parts.items()))

    def read_test(self, paths, data):
        return self.hold_out(read_part(paths, data), data, 0)[1]

    def hold_out(self, texts, data, seed):
        horizon, lengths = horizon_of(data, texts), texts.table.ends()
        steps = np.maximum(horizon, (lengths * _HELD_OUT).astype(np.int64))
        if data.hold_out is not None:
            require(
                data.hold_out >= horizon,
                "`data.hold_out` must be at least the horizon.",
                hold_out=data.hold_out,
                horizon=horizon,
            )
            steps = np.full_like(steps, data.hold_out)
        return cut_before(texts, steps)

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        context, horizon = context_of(settings.data, texts), horizon_of(settings.data, texts)
        length = task.backbone.patch_length if task else _patch_length(settings, context)
        return WindowExamples.from_part(
            texts,
            context,
            horizon,
            least=max(_LEAST_BEFORE, min(texts.season, context)),
            tokens=_tokens(context, horizon, length),
            **_usual_of(task) if task else _usual(texts, context),
            mixed=0.0 if held_out else _MIXED,
            seed=settings.training.seed,
        )

    def lengths_of(self, task):
        return {name: getattr(task, name) for name in self.lengths}

    def fitting_lengths(self, settings, examples):
        window = examples.window
        return {
            "season": examples.season,
            "horizon": window.horizon,
            "context": window.context,
        }

    def task(self, settings, texts, tokenizers, source_task):
        table, data = texts.table, settings.data
        if source_task:
            model = source_task.backbone
        else:
            length = _patch_length(settings, data.context)
            model = self.model(
                settings,
                _tokens(data.context, data.horizon, length),
                data.context,
                data.horizon,
                targets=table.targets,
                unknown=len(table.columns.get("unknown", ())),
                known_scales=_known_scales(texts),
                **_usual(texts, data.context),
                patch_length=length,
            )
            examples = self.examples(settings, texts, {}, None, held_out=True)
            distance = -(-len(examples) // _MOST_FITTED)
            every = np.arange(0, len(examples), distance)
            fit_linear_forecast(model, *examples.assemble(every), distance)
        return ForecastTask(model, table.columns, data.season, data.time_steps)

    def check_test(self, settings, texts, task):
        super().check_test(settings, texts, task)
        self.examples(settings, texts, {}, task, held_out=True)  # raises without a window

    def validation_set(self, task, settings, texts):
        examples = self.examples(settings, texts, {}, task, held_out=True)
        measure = None
        if settings.metrics:
            most = settings.data.decode_limit or _MOST_WINDOWS
            measure = partial(self._own, task, texts, settings.metrics, most)
        by_chance = _GAIN_OF_ONE * math.sqrt(task.horizon / len(examples))
        return ValidationSet(examples, measure, start_gain=max(_LEAST_GAIN, by_chance))

    def _own(self, task: Any, part: SeriesPart, metrics: list[str], most: int) -> dict[str, float]:
        found = _measured(part, self.answers(task, part, most=most))
        return {name: found[name] for name in metrics if name in found}

    def as_trained(self, task, data):
        found = {name: getattr(task, name, None) for name in ("columns", "horizon", "season")}
        found |= {"time_steps": getattr(task, "time_steps", data.time_steps)}
        given = {name: getattr(data, name) for name in ("columns", "horizon", "season")}
        given = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(data, **found | given)

    def shown_metrics(self, results, metrics):
        return [name for name in results if name != "items"]

    def default_metrics(self, data):
        return list(FORECAST_METRICS)

    def answers(self, task, texts, beams=None, progress=None, most=_MOST_WINDOWS):
        windows, series = _windows_of(task, texts, most)
        rows = np.arange(len(windows))
        future = windows.future(rows) if windows.known else None
        quantiles = task.predict(windows.past(rows), future, progress)
        return Forecasts(windows, series, quantiles, list(task.quantiles), _season(task, texts))

    def scores(self, texts, answers, metrics):
        for name in metrics:
            self.goal(name)
        windows, series, *_, season = answers
        found, naive = _measured(texts, answers), _naive(texts, windows, series, season)
        names = [name for name in metrics if name in found]
        return (
            {"items": len(windows)}
            | {name: found[name] for name in names}
            | {f"naive_{name}": naive[name] for name in names if name in naive}
        )

    def judged(self, texts, answers):
        """Judges the medians of each window by their mean absolute scaled error."""
        windows, series, quantiles, levels, season = answers
        actual, scales = windows.actual(np.arange(len(windows))), _scales(texts, windows, season)
        medians = quantiles[..., levels.index(0.5)]
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.abs(medians - actual) / scales[series][:, None]
        table = texts.table
        places = zip(series.tolist(), windows.begins(table, series).tolist(), strict=True)
        names = [f"{table.ids[one]} {table.time(one, step)}".strip() for one, step in places]
        return [
            Judged(name, _shown(right), _shown(median), float(np.nanmean(error)))
            for name, right, median, error in zip(names, actual, medians, errors, strict=True)
        ]

    def count(self, texts):
        return len(texts)

    def goal(self, metric):
        require_one_of("metric", metric, FORECAST_METRICS)
        return "max" if metric == "coverage" else "min"

    def charts(self, task, texts, answers):
        """The last forecast of each of the first series."""
        windows, series, quantiles, levels, _ = answers
        lasts = [np.flatnonzero(series == one)[-1] for one in np.unique(series)[:_DRAWN]]
        drawn = [
            drawn_forecast(texts.table, windows, row, series[row], levels, quantiles[row])
            for row in lasts
        ]
        return {"forecasts": drawn}

    def baseline(self, texts, metrics, task=None):
        """Measures the seasonal naive forecast."""
        windows, series = _windows_of(task, texts, _MOST_WINDOWS)
        found = _naive(texts, windows, series, _season(task, texts))
        values = {name: found[name] for name in metrics if name in found}
        return Baseline("the value of a season before", values)

    def held_out_inputs(self, task, texts):
        """Histories and known covariates of windows, those without missing values first."""
        windows, _ = _windows_of(task, texts, _EXAMPLES)
        rows = np.arange(len(windows))
        past, future = windows.past(rows)[:, -task.context :], windows.future(rows)
        gaps = np.isnan(past).sum(axis=(1, 2)) + np.isnan(future).sum(axis=(1, 2))
        whole = rows[gaps == 0]  # JSON has no number for a missing value
        return [written_example(past[row], future[row] if windows.known else None) for row in whole]

    def described(self, texts):
        lines = described(texts.table)
        season = f"season {texts.season:,}" if texts.season > 1 else "no season"
        return [*lines, f"    season: {season}; the last steps of each series are held out"]


def read_part(paths: list[str], data: DataSettings) -> SeriesPart:
    """Reads series, and finds their season unless it is set."""
    table = read_series(paths, data.columns, data.skip_bad_lines, data.encoding, data.time_steps)
    wrong = "; ".join(note for note in table.notes if note.startswith("malformed: "))
    require(
        bool(table.ends().any()),
        f"{table.name}: no target has a value.{' ' if wrong else ''}{wrong}",
        target=list(table.columns["target"]),
    )
    season = data.season
    if season is None:
        season = find_season(
            [
                values[: int(end * _SEASON_FROM), target]
                for values, end in zip(table.values, table.ends(), strict=True)
                for target in range(table.targets)
            ]
        )
    return SeriesPart.whole(table, season)


def horizon_of(data: DataSettings, part: SeriesPart) -> int:
    """The horizon: as set, or a season, and no more than a tenth of a usual series."""
    if data.horizon is not None:
        return data.horizon
    usual = part.season if part.season > 1 else _HORIZON
    most = int(np.median(part.table.ends()) * _MOST_OF_SERIES)
    return max(1, min(usual, most))


def context_of(data: DataSettings, part: SeriesPart) -> int:
    """The context: as set, or two seasons and at least two horizons and 32 steps.

    More seasons show better what repeats: nine short ones, or as many as fit into a tenth of a
    usual series.
    """
    if data.context is not None:
        return data.context
    context = max(_SEASONS * max(part.season, horizon_of(data, part)), _LEAST_CONTEXT)
    if part.season > _SHORT_SEASON:
        return context
    fitting = int(np.median(part.table.ends()) * _MOST_OF_SERIES) // part.season
    return max(context, min(_SHORT_SEASONS, fitting) * part.season)


def _patch_length(settings: RunSettings, context: int) -> int:
    return settings.model.get("patch_length") or -(-context // _PATCHES)


def _tokens(context: int, horizon: int, patch_length: int) -> int:
    """Number of patches of a window."""
    return -(-context // patch_length) - (-horizon // patch_length)


def _measured(part: SeriesPart, answers: Forecasts) -> dict[str, float]:
    """Measures forecasts of windows of a part."""
    windows, series, quantiles, levels, season = answers
    scales = _scales(part, windows, season)[series]
    return measure_forecasts(windows.actual(np.arange(len(windows))), quantiles, levels, scales)


def _naive(part: SeriesPart, windows: Windows, series: np.ndarray, season: int) -> dict[str, float]:
    """Measures the values of a season before as forecasts of windows of a part."""
    past = windows.past(np.arange(len(windows)))[..., : windows.targets]
    values = seasonal_naive(past, windows.horizon, season)[..., None]
    found = _measured(part, Forecasts(windows, series, values, [0.5], season))
    del found["coverage"]  # of a single value
    return found


def _scales(part: SeriesPart, windows: Windows, season: int) -> np.ndarray:
    """Errors of the seasonal naive forecast in the history of each series, (series, targets)."""
    histories = (
        values[:begin, : windows.targets]
        for values, begin in zip(part.table.values, part.begins, strict=True)
    )
    return np.stack([seasonal_errors(history, season) for history in histories])


def _shown(numbers: np.ndarray) -> str:
    return " ".join(f"{number:.6g}" for number in numbers.ravel())


def _season(task: Any, part: SeriesPart) -> int:
    return getattr(task, "season", None) or part.season


def _known_scales(part: SeriesPart) -> list[float]:
    """Standard deviation of each known covariate in a part; 1 if it never changes there."""
    table = part.table
    if not table.known:
        return []
    steps = np.concatenate(
        [values[:end, -table.known :] for values, end in zip(table.values, part.ends, strict=True)]
    )
    with np.errstate(invalid="ignore"):
        scales = np.nanstd(steps, axis=0)
    return [float(scale) if scale > 0 else 1.0 for scale in scales]


def _usual(part: SeriesPart, context: int) -> dict[str, list[float]]:
    """Deviation of each target within contexts, if a part is long enough to know it, and its mean.

    Of several series each may have others. In a short one the distance of a context from the mean
    shows which context it is, and so it does in a series that drifts.
    """
    count = part.ends[0] // context
    if len(part.table.values) > 1 or count < _CONTEXTS_FOR_MEAN:
        return {}
    values = part.table.values[0][: count * context, : part.table.targets]
    with warnings.catch_warnings(action="ignore"):  # of contexts without any value
        variances = np.nanvar(values.reshape(count, context, -1), axis=1)
        scales, means = np.sqrt(np.nanmean(variances, axis=0)), np.nanmean(values, axis=0)
        parts = np.stack([np.nanmean(each, axis=0) for each in np.array_split(values, _DRIFTS)])
        drifts = np.nanvar(parts, axis=0) > _MOST_DRIFT * np.nanvar(values, axis=0)
    if not np.all(scales > 0):  # not for NaN
        return {}
    found = {"scales": scales.tolist()}
    return found if drifts.any() else found | {"centers": means.tolist()}


def _usual_of(task: ForecastTask) -> dict[str, list[float]]:
    return {"scales": task.backbone.scales, "centers": task.backbone.centers}


def _windows_of(task: Any, part: SeriesPart, most: int) -> tuple[Windows, np.ndarray]:
    """Windows of a part for a task, at equal distances if there are many, and their series."""
    series, begins = part.origins(task.horizon, max(_LEAST_BEFORE, _season(task, part)))
    longest = max(map(len, part.table.values))
    context = getattr(task, "context", min(longest, _LONGEST_PAST))
    windows = Windows.of(
        part.table, series, begins, max(context, _season(task, part)), task.horizon
    )
    rows = np.arange(len(windows))
    if len(rows) > most:
        rows = np.linspace(0, len(rows) - 1, most).astype(np.int64)
    past, actual = (
        np.isnan(each(rows)[..., : windows.targets]) for each in (windows.past, windows.actual)
    )
    rows = rows[~past.all(axis=1).any(axis=1) & ~actual.all(axis=(1, 2))]
    require(
        len(rows) > 0,
        f"{part.name}: no window is left to forecast: {task.horizon:,} of the last steps of a "
        "series must follow a value.",
        steps=len(part),
    )
    return windows.select(rows), series[rows]
